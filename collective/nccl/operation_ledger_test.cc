#include "collective/nccl/operation_ledger.h"

#include <gtest/gtest.h>

#include <chrono>

#include "base/check.h"
#include "collective/flight_text.h"
#include "collective/loopback/loopback_cluster.h"
#include "collective/nccl/testing/test_device.h"

namespace troupe {
namespace {

using std::chrono::seconds;

class OperationLedgerTest : public testing::Test {
 protected:
  // Issues one run, which begins and ends unless the device hangs.
  void Run(CollectiveOperation operation, size_t bytes, Purpose purpose) {
    const StatusOr<int> mark = ledger_.Issue(operation, bytes, purpose);
    TROUPE_CHECK_OK(mark.status());
    TROUPE_CHECK_OK(device_.Begin(*mark, 0));
    TROUPE_CHECK_OK(device_.End(*mark, 0));
  }
  bool Hangs(int second) {
    return !ledger_.CheckHang(MonotonicTime(seconds(second)), seconds(10)).ok();
  }

  LoopbackCluster cluster_{1};
  Communicator& group_ =
      *cluster_.network(0)
           .MakeCommunicator("data_shard", Purpose::kGradient, {0}, "data_shard/0")
           .value();
  TestDevice device_;
  OperationLedger ledger_{device_, group_};
};

TEST_F(OperationLedgerTest, WhatIsOverNeverHangs) {
  EXPECT_FALSE(Hangs(0));
  Run(CollectiveOperation::kAllGather, 64, Purpose::kUnshard);
  EXPECT_FALSE(Hangs(1));
  EXPECT_FALSE(Hangs(1000));
}

TEST_F(OperationLedgerTest, WhatIsBegunHangsAtTheLimitAfterItWasSeen) {
  Run(CollectiveOperation::kAllGather, 64, Purpose::kUnshard);
  device_.hangs = true;
  Run(CollectiveOperation::kAllGather, 64, Purpose::kUnshard);
  EXPECT_FALSE(Hangs(100));
  EXPECT_FALSE(Hangs(109));
  const Status status = ledger_.CheckHang(MonotonicTime(seconds(110)), seconds(10));
  EXPECT_EQ(Message(status),
            "all_gather of axis data_shard, purpose unshard, group data_shard/0: run 2 of its "
            "operations with "
            "64 bytes, last issued "
            "as operation 2 of the group, has not completed for 10.0 s on the device");
}

TEST_F(OperationLedgerTest, WhatRunsAgainAndAgainDoesNotHang) {
  device_.hangs = true;  // one is always in flight
  Run(CollectiveOperation::kAllReduce, 8, Purpose::kTensor);
  for (int second = 0; second < 100; second += 9) {
    EXPECT_FALSE(Hangs(second)) << second;
    Run(CollectiveOperation::kAllReduce, 8, Purpose::kTensor);
  }
}

TEST_F(OperationLedgerTest, WhatIsInFlightIsReportedWithHowLongItIsKnownToBe) {
  Run(CollectiveOperation::kAllReduce, 8, Purpose::kTensor);
  EXPECT_EQ(ledger_.Flight(MonotonicTime(seconds(1))).blocked_in, 0u);
  device_.hangs = true;
  Run(CollectiveOperation::kAllGather, 64, Purpose::kUnshard);
  EXPECT_FALSE(Hangs(100));
  const CollectiveFlight flight = ledger_.Flight(MonotonicTime(seconds(103)));
  EXPECT_EQ(flight.entered, 2u);
  EXPECT_EQ(flight.ranks, std::vector<int>{0});
  EXPECT_EQ(DescribeInFlight({flight}),
            "all_gather of axis data_shard, purpose unshard, group data_shard/0 (NCCL), 64 bytes, "
            "operation 2 of the group, for 3.0 s");
}

TEST_F(OperationLedgerTest, SizesOfOneOperationAreCountedTogether) {
  Run(CollectiveOperation::kAllGather, 64, Purpose::kUnshard);
  Run(CollectiveOperation::kAllGather, 32, Purpose::kUnshard);
  Run(CollectiveOperation::kAllGather, 32, Purpose::kGradient);
  std::vector<DeviceCollectiveStatistics> statistics;
  ledger_.AddTo(&statistics);
  ASSERT_EQ(statistics.size(), 2u);
  EXPECT_EQ(statistics[0].purpose, Purpose::kUnshard);
  EXPECT_EQ(statistics[0].count, 2u);
  EXPECT_EQ(statistics[0].bytes, 96u);
  EXPECT_EQ(statistics[0].seconds, 1.0);
  EXPECT_EQ(statistics[1].purpose, Purpose::kGradient);
  EXPECT_EQ(statistics[1].bytes, 32u);
}

TEST(BusBytes, AreThoseThatALinkCarries) {
  EXPECT_EQ(BusBytes(CollectiveOperation::kAllReduce, 100, 4), 150);
  EXPECT_EQ(BusBytes(CollectiveOperation::kReduceScatter, 100, 4), 75);
  EXPECT_EQ(BusBytes(CollectiveOperation::kAllGather, 100, 4), 75);
  EXPECT_EQ(BusBytes(CollectiveOperation::kSend, 100, 2), 100);
}

}  // namespace
}  // namespace troupe
