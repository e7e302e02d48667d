// The exchange of the devices of ranks that share a slice of TPU chips.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "coordinator/test_cluster.h"

namespace troupe {
namespace {

using Kind = v1::CoordinatorMessage;

class DeviceBookTest : public ::testing::Test {
 protected:
  DeviceBookTest() {
    cluster_.Connect("worker-0");
    cluster_.Connect("worker-1");
    cluster_.Submit(TestSpec("a", 2, 100));
  }

  void Send(int rank, int id) {
    v1::WorkerMessage message;
    v1::RankDevice& device = *message.mutable_rank_device();
    device.set_job("a");
    device.set_group_epoch(cluster_.job("a").record.group_epoch());
    device.set_rank(rank);
    device.set_id(id);
    cluster_.SendFrom(fmt::format("worker-{}", rank), std::move(message));
  }

  TestCluster cluster_;
};

TEST_F(DeviceBookTest, IsSentToEveryRankOnceAllHaveADevice) {
  Send(1, 7);
  EXPECT_EQ(cluster_.Count("worker-0", Kind::kDeviceBook), 0);
  Send(1, 8);  // a rank has one device in an epoch
  Send(0, 9);
  for (const char* const worker : {"worker-0", "worker-1"}) {
    ASSERT_EQ(cluster_.Count(worker, Kind::kDeviceBook), 1) << worker;
    const v1::DeviceBook& book = cluster_.Last(worker, Kind::kDeviceBook)->device_book();
    EXPECT_EQ(book.job(), "a");
    EXPECT_EQ(book.group_epoch(), 1u);
    ASSERT_EQ(book.devices_size(), 2);
    EXPECT_EQ(book.devices(0).id(), 9);
    EXPECT_EQ(book.devices(1).id(), 7);
  }
  cluster_.StartRanks("a");
  EXPECT_EQ(cluster_.job("a").record.state(), v1::JOB_STATE_RUNNING);
}

TEST_F(DeviceBookTest, IsSentAgainToAWorkerThatReconnects) {
  Send(0, 9);
  Send(1, 7);
  TestWorker& worker = cluster_.worker("worker-1");
  worker.inbox.clear();
  v1::HeldGroup& held = worker.held.emplace_back();
  held.set_job("a");
  held.set_group_epoch(1);
  held.add_ranks(1);
  cluster_.Reconnect("worker-1");
  EXPECT_EQ(cluster_.Count("worker-1", Kind::kDeviceBook), 1);
}

}  // namespace
}  // namespace troupe
