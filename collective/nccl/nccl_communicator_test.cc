// NCCL communicators over a fake library (testing/fake_nccl.h); ranks are threads over loopback.
#include "collective/nccl/nccl_communicator.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "collective/flight_text.h"
#include "collective/loopback/loopback_cluster.h"
#include "collective/nccl/nccl_library.h"
#include "collective/nccl/nccl_network.h"
#include "collective/nccl/testing/fake_nccl.h"
#include "collective/nccl/testing/test_device.h"

namespace troupe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Rank {
  int rank;
  CollectiveNetwork& host;
  Communicator& group;
  TestDevice& device;
  NcclNetwork& network;
  DeviceCommunicator& communicator;
};

class NcclCommunicatorTest : public testing::Test {
 protected:
  static constexpr DeviceStream kStream = 1;

  NcclCommunicatorTest() {
    auto library = NcclLibrary::Load(TROUPE_FAKE_NCCL);
    TROUPE_CHECK_OK(library.status());
    library_ = std::move(*library);
    void* const handle = dlopen(TROUPE_FAKE_NCCL, RTLD_NOW | RTLD_LOCAL);
    fake_ = reinterpret_cast<GetFakeNccl*>(dlsym(handle, kGetFakeNccl))();
    for (std::atomic<int>* const number :
         {&fake_->unique_id_result, &fake_->init_result, &fake_->async_result, &fake_->graphs,
          &fake_->unique_ids, &fake_->inits, &fake_->limited_inits, &fake_->aborts,
          &fake_->destroys, &fake_->calls, &fake_->in_progress, &fake_->breaches}) {
      *number = 0;
    }
    options_ = {.connect_limit = seconds(10),
                .hang_limit = seconds(10),
                .close_limit = seconds(5),
                .watch_period = milliseconds(2)};
  }
  ~NcclCommunicatorTest() override {
    EXPECT_EQ(fake_->breaches, 0) << "calls that NCCL does not admit";
  }

  // Calls `body` in a thread per rank; the rank's communicator is created but not connected.
  void Run(int ranks, const std::function<void(const Rank&)>& body) {
    LoopbackCluster cluster(ranks);
    cluster.Run([&](int rank) {
      CollectiveNetwork& host = cluster.network(rank);
      std::vector<int> all(static_cast<size_t>(ranks));
      std::iota(all.begin(), all.end(), 0);
      Communicator& group =
          *host.MakeCommunicator("tensor", Purpose::kTensor, all, "tensor/0").value();
      TROUPE_CHECK_OK(host.Connect(cluster.addresses(), seconds(10)));
      TestDevice device;
      NcclNetwork network(*library_, device, host, options_);
      const std::unique_ptr<DeviceCommunicator> communicator = network.Make(group);
      body({rank, host, group, device, network, *communicator});
    });
  }
  void RunConnected(int ranks, const std::function<void(const Rank&)>& body) {
    Run(ranks, [&](const Rank& rank) {
      TROUPE_CHECK_OK(rank.communicator.Connect());
      body(rank);
    });
  }

  std::unique_ptr<NcclLibrary> library_;
  FakeNccl* fake_ = nullptr;
  NcclOptions options_;
};

float Value(int rank, size_t i) {
  return static_cast<float>((3 * i + static_cast<size_t>(rank)) % 7);
}

std::vector<float> Values(int rank, size_t count) {
  std::vector<float> values;
  for (size_t i = 0; i < count; ++i) values.push_back(Value(rank, i));
  return values;
}

TEST(NcclLibrary, WhatCannotBeLoadedIsNamed) {
  const Status status = NcclLibrary::Load("libno-such-nccl.so.2").status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_NE(Message(status).find("libno-such-nccl.so.2"), std::string_view::npos) << status;
  EXPECT_EQ(NcclInUse("libno-such-nccl.so.2"), "");
}

TEST(NcclLibrary, ALibraryWithoutItsFunctionsIsRefused) {
  const Status status = NcclLibrary::Load("libc.so.6").status();
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_NE(Message(status).find("ncclGetVersion"), std::string_view::npos) << status;
}

TEST_F(NcclCommunicatorTest, AnOldVersionIsRefusedByItsNumber) {
  EXPECT_EQ(library_->version_text(), "2.28.9");
  fake_->version = 22304;
  const Status status = NcclLibrary::Load(TROUPE_FAKE_NCCL).status();
  EXPECT_EQ(NcclInUse(TROUPE_FAKE_NCCL), "");
  fake_->version = 22809;
  EXPECT_EQ(NcclInUse(TROUPE_FAKE_NCCL), "2.28.9");
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(Message(status).find("2.23.4, but at least 2.27.0"), std::string_view::npos) << status;
}

TEST_F(NcclCommunicatorTest, OneUniqueIdReachesAllRanks) {
  RunConnected(3, [&](const Rank& rank) {
    EXPECT_EQ(rank.communicator.rank(), rank.rank);
    EXPECT_EQ(rank.communicator.size(), 3);
  });
  EXPECT_EQ(fake_->unique_ids, 1);
  EXPECT_EQ(fake_->inits, 3);
  EXPECT_GT(fake_->in_progress, 0) << "nothing was polled";
  EXPECT_EQ(fake_->destroys, 3);
  EXPECT_EQ(fake_->aborts, 0);
  EXPECT_EQ(fake_->limited_inits, 0);
}

TEST_F(NcclCommunicatorTest, APipelineLinkTakesFewBlocks) {
  LoopbackCluster cluster(2);
  cluster.Run([&](int rank) {
    CollectiveNetwork& host = cluster.network(rank);
    Communicator& link =
        *host.MakeCommunicator("pipe", Purpose::kPipe, {0, 1}, "activation[chunk 0, 0->1]").value();
    TROUPE_CHECK_OK(host.Connect(cluster.addresses(), seconds(10)));
    TestDevice device;
    NcclNetwork network(*library_, device, host, options_);
    const std::unique_ptr<DeviceCommunicator> communicator = network.Make(link);
    TROUPE_CHECK_OK(communicator->Connect());
  });
  EXPECT_EQ(fake_->limited_inits, 2);
}

TEST_F(NcclCommunicatorTest, AllReduceSumsAndFindsTheGreatestInPlaceToo) {
  RunConnected(3, [&](const Rank& rank) {
    const std::vector<float> input = Values(rank.rank, 50);
    std::vector<float> sum(50), greatest = input;
    TROUPE_CHECK_OK(rank.communicator.AllReduce(input.data(), sum.data(), 50, ElementType::kFloat32,
                                                DeviceReduction::kSum, Purpose::kTensor, kStream));
    TROUPE_CHECK_OK(rank.communicator.AllReduce(greatest.data(), greatest.data(), 50,
                                                ElementType::kFloat32, DeviceReduction::kMax,
                                                Purpose::kTensor, kStream));
    for (size_t i = 0; i < 50; ++i) {
      EXPECT_EQ(sum[i], Value(0, i) + Value(1, i) + Value(2, i));
      EXPECT_EQ(greatest[i], std::max({Value(0, i), Value(1, i), Value(2, i)}));
    }
  });
}

TEST_F(NcclCommunicatorTest, BlocksOfEqualAndUnequalSizesAreScatteredAndGathered) {
  for (const std::vector<size_t>& counts :
       std::vector<std::vector<size_t>>{{4, 4, 4}, {5, 4, 4}, {0, 7, 1}, {0, 0, 3}, {0, 0, 0}}) {
    RunConnected(3, [&](const Rank& rank) {
      const size_t total = counts[0] + counts[1] + counts[2];
      const size_t own = counts[static_cast<size_t>(rank.rank)];
      const size_t first = std::accumulate(counts.begin(), counts.begin() + rank.rank, size_t{0});
      std::vector<float> data = Values(rank.rank, total);
      // In place: output is this rank's block of the input.
      TROUPE_CHECK_OK(rank.communicator.ReduceScatter(data.data(), data.data() + first, counts,
                                                      ElementType::kFloat32, Purpose::kGradient,
                                                      kStream));
      const auto sum = [](size_t i) { return Value(0, i) + Value(1, i) + Value(2, i); };
      for (size_t i = 0; i < total; ++i) {
        const bool is_own = i >= first && i < first + own;
        EXPECT_EQ(data[i], is_own ? sum(i) : Value(rank.rank, i)) << i;
      }
      std::vector<size_t> bytes = counts;
      for (size_t& count : bytes) count *= sizeof(float);
      TROUPE_CHECK_OK(rank.communicator.AllGather(data.data() + first, data.data(), bytes,
                                                  Purpose::kUnshard, kStream));
      for (size_t i = 0; i < total; ++i) EXPECT_EQ(data[i], sum(i)) << i;
    });
  }
}

TEST_F(NcclCommunicatorTest, AllToAllSendsToEachWhatIsItsOwnAndNothingWhereThereIsNothing) {
  const auto bytes = [](int from, int to) { return static_cast<size_t>((from + 2 * to) % 3 * 5); };
  RunConnected(3, [&](const Rank& rank) {
    std::vector<size_t> send, receive;
    std::vector<uint8_t> input, due;
    for (int peer = 0; peer < 3; ++peer) {
      send.push_back(bytes(rank.rank, peer));
      receive.push_back(bytes(peer, rank.rank));
      input.insert(input.end(), send.back(), static_cast<uint8_t>(10 * rank.rank + peer));
      due.insert(due.end(), receive.back(), static_cast<uint8_t>(10 * peer + rank.rank));
    }
    std::vector<uint8_t> output(due.size());
    TROUPE_CHECK_OK(rank.communicator.AllToAll(input.data(), output.data(), send, receive,
                                               Purpose::kDispatch, kStream));
    EXPECT_EQ(output, due);
  });
}

TEST_F(NcclCommunicatorTest, ActivationsGoFromOneRankToAnother) {
  RunConnected(2, [&](const Rank& rank) {
    std::vector<float> data = Values(0, 9);
    if (rank.rank == 0) {
      TROUPE_CHECK_OK(
          rank.communicator.Send(data.data(), 9 * sizeof(float), 1, Purpose::kPipe, kStream));
    } else {
      std::vector<float> received(9);
      TROUPE_CHECK_OK(rank.communicator.Receive(received.data(), 9 * sizeof(float), 0,
                                                Purpose::kPipe, kStream));
      EXPECT_EQ(received, data);
    }
  });
}

TEST_F(NcclCommunicatorTest, StatisticsCountRunsBytesAndBusBytes) {
  RunConnected(2, [&](const Rank& rank) {
    std::vector<float> data(100);
    for (int i = 0; i < 3; ++i) {
      TROUPE_CHECK_OK(rank.communicator.AllReduce(data.data(), data.data(), 100,
                                                  ElementType::kFloat32, DeviceReduction::kSum,
                                                  Purpose::kGradient, kStream));
    }
    const std::vector<DeviceCollectiveStatistics> statistics = rank.network.Statistics();
    ASSERT_EQ(statistics.size(), 1u);
    EXPECT_EQ(statistics[0].operation, CollectiveOperation::kAllReduce);
    EXPECT_EQ(statistics[0].axis, "tensor");
    EXPECT_EQ(statistics[0].purpose, Purpose::kGradient);
    EXPECT_EQ(statistics[0].count, 3u);
    EXPECT_EQ(statistics[0].bytes, 1200u);
    EXPECT_EQ(statistics[0].bus_bytes, 1200.0);  // 2·(n-1)/n of `bytes`
    EXPECT_EQ(statistics[0].seconds, 1.5);
    EXPECT_EQ(
        rank.network.FlightRecorderJson(),
        R"({"status":"OK","groups":[{"group":"tensor/0","axis":"tensor","issued":3,"operations":[)"
        R"({"operation":"all_reduce","purpose":"gradient","bytes":400,"begun":3,"over":3}]}]})");
  });
}

TEST_F(NcclCommunicatorTest, ARankWithoutAnIdReportsItToAll) {
  fake_->unique_id_result = nccl::kSystemError;
  Run(2, [&](const Rank& rank) {
    const Status status = rank.communicator.Connect();
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_NE(
        Message(status).find(rank.rank == 0 ? "unhandled system error" : "rank 0 has no unique id"),
        std::string_view::npos)
        << status;
  });
  EXPECT_EQ(fake_->inits, 0);
}

TEST_F(NcclCommunicatorTest, AFailedInitialisationAbortsTheNetworkToo) {
  fake_->init_result = nccl::kUnhandledCudaError;
  Run(2, [&](const Rank& rank) {
    const Status status = rank.communicator.Connect();
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_NE(Message(status).find("group tensor/0 of NCCL: NCCL: unhandled cuda error"),
              std::string_view::npos)
        << status;
    EXPECT_TRUE(rank.host.aborted());
  });
}

TEST_F(NcclCommunicatorTest, AConnectionThatNobodyJoinsEndsAtItsLimit) {
  options_.connect_limit = milliseconds(50);
  Run(2, [&](const Rank& rank) {
    if (rank.rank == 0) {
      const Status status = rank.communicator.Connect();
      EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
    } else {
      std::array<char, sizeof(nccl::UniqueId) + 1> invitation{};  // received but not used
      TROUPE_CHECK_OK(
          rank.group.Broadcast(invitation.data(), invitation.size(), 0, Purpose::kStart));
    }
  });
  EXPECT_EQ(fake_->aborts, 1);
}

TEST_F(NcclCommunicatorTest, AnAsynchronousErrorAbortsEveryRankWithNcclsWords) {
  std::atomic<int> connected = 0;
  RunConnected(2, [&](const Rank& rank) {
    ++connected;
    while (connected < 2) std::this_thread::yield();
    fake_->async_result = nccl::kRemoteError;
    while (!rank.host.aborted()) std::this_thread::yield();
    const Status status = rank.network.status();
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_NE(Message(status).find(
                  "remote process exited or there was a network error: the test breaks it"),
              std::string_view::npos)
        << status;
    float number = 0;
    const Status after =
        rank.communicator.AllReduce(&number, &number, 1, ElementType::kFloat32,
                                    DeviceReduction::kSum, Purpose::kTensor, kStream);
    EXPECT_EQ(after.code(), StatusCode::kUnavailable);
    EXPECT_NE(Message(after).find("all_reduce of axis tensor, purpose tensor, group tensor/0"),
              std::string_view::npos)
        << after;
  });
  EXPECT_EQ(fake_->aborts, 2);
  EXPECT_EQ(fake_->destroys, 0);
}

TEST_F(NcclCommunicatorTest, ABlockedCallEndsWhenTheHostsNetworkIsAborted) {
  RunConnected(2, [&](const Rank& rank) {
    if (rank.rank == 1) {
      // Rank 1 does not join the sum. A failure on one rank aborts the hosts' networks of all.
      rank.host.Abort(Cancelled("the epoch ends"));
      while (rank.network.status().ok()) std::this_thread::yield();
      return;
    }
    std::thread failure([&, blocked = fake_->in_progress + 5] {
      while (fake_->in_progress < blocked) std::this_thread::yield();
      rank.host.Abort(Cancelled("the epoch ends"));
    });
    float number = 0;
    const Status status =
        rank.communicator.AllReduce(&number, &number, 1, ElementType::kFloat32,
                                    DeviceReduction::kSum, Purpose::kTensor, kStream);
    failure.join();
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_NE(Message(status).find("the host's network was aborted"), std::string_view::npos)
        << status;
  });
  EXPECT_EQ(fake_->aborts, 2);
}

TEST_F(NcclCommunicatorTest, ACallThatIsNeverDoneEndsAtTheHangLimit) {
  options_.hang_limit = milliseconds(50);
  RunConnected(2, [&](const Rank& rank) {
    if (rank.rank == 1) {
      while (fake_->aborts < 1) std::this_thread::yield();
      return;
    }
    float number = 0;
    const Status status = rank.communicator.AllGather(&number, &number, std::array<size_t, 2>{4, 0},
                                                      Purpose::kUnshard, kStream);
    EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
    EXPECT_NE(Message(status).find("all_gather of axis tensor, purpose unshard, group tensor/0"),
              std::string_view::npos)
        << status;
  });
}

TEST_F(NcclCommunicatorTest, AnOperationThatHangsOnTheDeviceIsNamedByTheWatch) {
  options_.hang_limit = milliseconds(500);
  RunConnected(2, [&](const Rank& rank) {
    std::vector<float> data(10);
    const auto sum = [&](Purpose purpose) {
      return rank.communicator.AllReduce(data.data(), data.data(), 10, ElementType::kFloat32,
                                         DeviceReduction::kSum, purpose, kStream);
    };
    TROUPE_CHECK_OK(sum(Purpose::kTensor));
    rank.device.hangs = true;
    TROUPE_CHECK_OK(sum(Purpose::kGradient));
    while (!rank.host.aborted()) std::this_thread::yield();
    const Status status = rank.network.status();
    EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
    EXPECT_NE(Message(status).find("all_reduce of axis tensor, purpose gradient, group tensor/0: "
                                   "run 1 of its operations with 40 "
                                   "bytes, last issued as operation 2 of the group"),
              std::string_view::npos)
        << status;
    while (fake_->aborts < 2) std::this_thread::yield();
    // As it was when the watcher detected the hang: the abort ends the operation.
    rank.device.hangs = false;
    TROUPE_CHECK_OK(rank.device.End(1, kStream));
    ASSERT_EQ(rank.network.Flights().size(), 1u);
    EXPECT_EQ(rank.network.Flights()[0].ranks, (std::vector<int>{0, 1}));
    EXPECT_EQ(rank.network.Flights()[0].entered, 2u);
    EXPECT_NE(
        DescribeInFlight(rank.network.Flights())
            .find("all_reduce of axis tensor, purpose gradient, group tensor/0 (NCCL), 40 bytes, "
                  "operation 2 of the group, for "),
        std::string::npos)
        << DescribeInFlight(rank.network.Flights());
    EXPECT_NE(rank.network.FlightRecorderJson().find(R"("bytes":40,"begun":1,"over":0)"),
              std::string::npos)
        << rank.network.FlightRecorderJson();
  });
  EXPECT_EQ(fake_->aborts, 2);
}

TEST_F(NcclCommunicatorTest, AnAbortDoesNotBlockWhereGraphsHoldCalls) {
  std::atomic<int> aborted = 0;
  RunConnected(2, [&](const Rank& rank) {
    ++fake_->graphs;
    rank.network.Abort(Cancelled("the epoch ends"));
    EXPECT_FALSE(rank.network.status().ok());
    ++aborted;
    while (aborted < 2) std::this_thread::yield();
    EXPECT_EQ(fake_->aborts, 0) << "it ended before its graphs";
    ++aborted;
    while (aborted < 4) std::this_thread::yield();
    --fake_->graphs;  // by the thread that captured the graphs, once it is notified
  });
  EXPECT_EQ(fake_->aborts, 2);
}

TEST_F(NcclCommunicatorTest, WhatDoesNotEndIsLeftBehindAndReported) {
  options_.close_limit = milliseconds(50);
  std::atomic<int> left = 0;
  LoopbackCluster cluster(2);
  cluster.Run([&](int rank) {
    CollectiveNetwork& host = cluster.network(rank);
    Communicator& group =
        *host.MakeCommunicator("tensor", Purpose::kTensor, {0, 1}, "tensor/0").value();
    TROUPE_CHECK_OK(host.Connect(cluster.addresses(), seconds(10)));
    TestDevice device;
    NcclNetwork network(*library_, device, host, options_);
    std::unique_ptr<DeviceCommunicator> communicator = network.Make(group);
    TROUPE_CHECK_OK(communicator->Connect());
    EXPECT_FALSE(network.leaves_behind());
    fake_->graphs = 1;
    communicator.reset();
    EXPECT_TRUE(network.leaves_behind());
    // The abort's thread still uses the device.
    if (++left == 2) fake_->graphs = 0;
    while (fake_->aborts < 2) std::this_thread::yield();
  });
  EXPECT_EQ(fake_->destroys, 0);
}

TEST_F(NcclCommunicatorTest, RanksWhoseCallsDifferLearnIt) {
  RunConnected(2, [&](const Rank& rank) {
    std::vector<float> data(10);
    const Status status = rank.communicator.AllReduce(
        data.data(), data.data(), rank.rank == 0 ? 10 : 9, ElementType::kFloat32,
        DeviceReduction::kSum, Purpose::kTensor, kStream);
    EXPECT_FALSE(status.ok());
    EXPECT_TRUE(rank.host.aborted());
  });
}

}  // namespace
}  // namespace troupe
