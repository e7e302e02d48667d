#include "collective/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "collective/digest.h"
#include "collective/loopback/loopback_cluster.h"
#include "collective/loopback/loopback_transport.h"
#include "collective/transport.h"

namespace troupe {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using Json = nlohmann::json;

constexpr Duration kLimit = std::chrono::seconds(20);

MonotonicTime Now() { return std::chrono::steady_clock::now(); }

std::string Text(const Status& status) { return std::string(Message(status)); }

Json FlightRecord(const CollectiveNetwork& network) {
  return Json::parse(network.FlightRecorderJson());
}

std::vector<int> AllRanks(int ranks) {
  std::vector<int> all(static_cast<size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Communicator* MakeGroup(LoopbackCluster& cluster, int rank, const std::string& name = "data/0") {
  auto group = cluster.network(rank).MakeCommunicator("data_replicate", Purpose::kGradient,
                                                      AllRanks(cluster.ranks()), name);
  EXPECT_TRUE(group.ok()) << group.status();
  return *group;
}

// Connects all ranks and returns their communicators, by rank.
std::vector<Communicator*> Connected(LoopbackCluster& cluster) {
  std::vector<Communicator*> groups(static_cast<size_t>(cluster.ranks()));
  cluster.Run([&](int rank) {
    groups[static_cast<size_t>(rank)] = MakeGroup(cluster, rank);
    const Status status = cluster.network(rank).Connect(cluster.addresses(), kLimit);
    EXPECT_TRUE(status.ok()) << status;
  });
  return groups;
}

TEST(NetworkTest, AbortFromAnotherThreadEndsWaitingAndFutureOperationsWithin100Milliseconds) {
  for (const int cores : {1, 8}) {  // ranks that sleep, and ranks that spin
    LoopbackCluster cluster(2, {.ranks_on_host = 2, .cores_on_host = cores});
    const std::vector<Communicator*> groups = Connected(cluster);
    std::vector<float> data(100000, 1.0f);
    Status waited;
    MonotonicTime ended;
    std::thread step([&] {
      CollectiveHandle pending = groups[0]->StartAllReduce(data.data(), 10, SumFloat32());
      waited = groups[0]->AllReduce(data.data() + 10, data.size() - 10, SumFloat32());
      ended = Now();
      EXPECT_EQ(Text(pending.Wait()), "rank 1 was lost");
    });
    // Abort only once the operation is in flight.
    const MonotonicTime limit = Now() + kLimit;
    while (cluster.network(0).FlightRecorderJson().find("\"sequence\": 1") == std::string::npos &&
           Now() < limit) {
      std::this_thread::yield();
    }
    const MonotonicTime aborted = Now();
    cluster.network(0).Abort(Unavailable("rank 1 was lost"));
    step.join();
    EXPECT_LT(ToSeconds(ended - aborted), 0.1);
    EXPECT_EQ(waited.code(), StatusCode::kUnavailable);
    EXPECT_EQ(Text(waited), "rank 1 was lost");
    cluster.network(0).Abort(Internal("too late to be the cause"));
    EXPECT_EQ(Text(groups[0]->Barrier()), "rank 1 was lost");
    EXPECT_EQ(Text(groups[0]->StartAllReduce(data.data(), 1, SumFloat32()).Wait()),
              "rank 1 was lost");
  }
}

// A transport whose messages to some ranks fail once `broken` is set.
class BrokenTransport final : public Transport {
 public:
  BrokenTransport(std::unique_ptr<Transport> whole, std::set<int> unreached,
                  const std::atomic<bool>* broken)
      : whole_(std::move(whole)), unreached_(std::move(unreached)), broken_(*broken) {}

  const std::string& address() const override { return whole_->address(); }
  Status Connect(int peer, const std::string& address) override {
    return whole_->Connect(peer, address);
  }
  Link LinkTo(int peer) const override { return whole_->LinkTo(peer); }
  void Send(int peer, uint64_t tag, const void* data, size_t bytes, Transfer* transfer) override {
    if (!broken_ || !unreached_.contains(peer))
      return whole_->Send(peer, tag, data, bytes, transfer);
    *transfer = Transfer{};
    transfer->status = Unavailable("send: Connection reset by remote peer");
  }
  void Receive(int peer, uint64_t tag, void* data, size_t bytes, Transfer* transfer) override {
    whole_->Receive(peer, tag, data, bytes, transfer);
  }
  void Cancel(Transfer* transfer) override { whole_->Cancel(transfer); }
  bool Progress() override { return whole_->Progress(); }
  int event_descriptor() const override { return whole_->event_descriptor(); }
  bool Arm() override { return whole_->Arm(); }
  Status Close(bool flush, Duration limit) override { return whole_->Close(flush, limit); }

 private:
  const std::unique_ptr<Transport> whole_;
  const std::set<int> unreached_;
  const std::atomic<bool>& broken_;
};

// Two networks; messages of the second one fail once `broken` is set.
class BrokenLinkTest : public testing::Test {
 protected:
  BrokenLinkTest() {
    LoopbackFabric fabric(2);
    for (int rank = 0; rank < 2; ++rank) {
      std::unique_ptr<Transport> transport = fabric.MakeTransport(rank);
      if (rank == 1) {
        transport =
            std::make_unique<BrokenTransport>(std::move(transport), std::set<int>{0}, &broken_);
      }
      networks_.push_back(
          *CollectiveNetwork::Make({.rank = rank, .ranks = 2}, std::move(transport)));
      groups_.push_back(
          *networks_.back()->MakeCommunicator("data", Purpose::kGradient, {0, 1}, "data/0"));
    }
  }
  // Connects both networks; rank 0 gives up after `limit`. Returns the status of rank 1.
  Status Connect(Duration limit) {
    const std::vector<std::string> addresses = {networks_[0]->address(), networks_[1]->address()};
    std::thread other([&] { (void)networks_[0]->Connect(addresses, limit); });
    const Status status = networks_[1]->Connect(addresses, kLimit);
    other.join();
    return status;
  }

  std::atomic<bool> broken_ = false;
  std::vector<std::unique_ptr<CollectiveNetwork>> networks_;
  std::vector<Communicator*> groups_;
};

TEST_F(BrokenLinkTest, AnOperationThatFailsNamesTheRanksThatItDidNotReach) {
  ASSERT_TRUE(Connect(kLimit).ok());
  EXPECT_TRUE(networks_[1]->UnreachedRanks().empty());
  broken_ = true;
  float value = 1;
  EXPECT_EQ(groups_[1]->AllReduce(&value, 1, SumFloat32()).code(), StatusCode::kUnavailable);
  EXPECT_EQ(networks_[1]->UnreachedRanks(), std::set<int>{0});
}

TEST_F(BrokenLinkTest, AHandshakeThatFailsNamesTheRanksThatItDidNotReach) {
  broken_ = true;
  EXPECT_EQ(Connect(milliseconds(50)).code(), StatusCode::kUnavailable);
  EXPECT_EQ(networks_[1]->UnreachedRanks(), std::set<int>{0});
  EXPECT_TRUE(networks_[0]->UnreachedRanks().empty()) << "that it received nothing proves little";
}

TEST(NetworkTest, AnAbortFromOutsideLeavesNoRankUnreached) {
  LoopbackCluster cluster(2);
  const std::vector<Communicator*> groups = Connected(cluster);
  cluster.network(0).Abort(Unavailable("rank 1 was lost"));
  EXPECT_FALSE(groups[0]->Barrier().ok());
  EXPECT_TRUE(cluster.network(0).UnreachedRanks().empty());
}

TEST(NetworkTest, AHangNamesOperationAxisPurposeGroupSequenceAndTheMissingRank) {
  LoopbackCluster cluster(3, {.hang_limit = milliseconds(80)});
  const std::vector<Communicator*> groups = Connected(cluster);
  std::vector<Status> statuses(3);
  cluster.Run([&](int rank) {
    const size_t own = static_cast<size_t>(rank);
    std::vector<float> data(100, 1.0f);
    ASSERT_TRUE(groups[own]->AllReduce(data.data(), data.size(), SumFloat32()).ok());
    // Rank 2 does not join. With three ranks, rank 2 first sends its part to rank 0.
    if (rank != 2)
      statuses[own] =
          groups[own]->AllReduce(data.data(), data.size(), SumFloat32(), Purpose::kControl);
  });
  EXPECT_EQ(statuses[0].code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(
      Text(statuses[0]),
      testing::MatchesRegex(
          "all_reduce on axis data_replicate \\(purpose control\\) of group data/0, sequence 1, "
          "400 bytes, has not finished after 0\\.[0-9]+ s: rank 2 of the group "
          "\\(global rank 2\\) did not arrive"));
  EXPECT_EQ(Text(groups[0]->Barrier()), Text(statuses[0]));
  const Json recorded = FlightRecord(cluster.network(0));
  EXPECT_EQ(recorded["rank"], 0);
  EXPECT_EQ(recorded["status"], ToString(statuses[0]));
  ASSERT_EQ(recorded["operations"].size(), 2u);
  Json failed = recorded["operations"][1];
  EXPECT_GE(failed["finished_seconds"], failed["issued_seconds"]);
  failed.erase("issued_seconds");
  failed.erase("finished_seconds");
  EXPECT_EQ(failed, Json::parse(R"({"sequence": 1, "operation": "all_reduce", "group": "data/0",
                                    "axis": "data_replicate", "purpose": "control", "bytes": 400,
                                    "state": "failed", "waiting_for_ranks": [2]})"));
  EXPECT_EQ(recorded["operations"][0]["state"], "finished");
  EXPECT_EQ(recorded["operations"][0]["waiting_for_ranks"], Json::array());
}

TEST(NetworkTest, ThePendingOperationAndTheRankItWaitsForAreInTheFlightRecorder) {
  LoopbackCluster cluster(2);
  const std::vector<Communicator*> groups = Connected(cluster);
  float data[4] = {};
  CollectiveHandle handle = groups[0]->StartAllReduce(data, 4, SumFloat32());
  const Json pending = FlightRecord(cluster.network(0))["operations"].back();
  EXPECT_EQ(pending["finished_seconds"], nullptr);
  EXPECT_EQ(pending["state"], "pending");
  EXPECT_EQ(pending["waiting_for_ranks"], Json::array({1}));
  cluster.network(0).Abort(Cancelled("enough"));
  EXPECT_FALSE(handle.Wait().ok());
}

TEST(NetworkTest, ARankThatRunsFarAheadWaitsForItsPeers) {
  constexpr int kOperations = 700;  // more than may be pending at a time
  LoopbackCluster cluster(2, {.hang_limit = kLimit});
  const std::vector<Communicator*> groups = Connected(cluster);
  std::atomic<int> issued = 0;
  cluster.Run([&](int rank) {
    // The second rank begins when the first one cannot go on without it.
    const MonotonicTime limit = Now() + kLimit;
    while (rank == 1 && issued < 512 && Now() < limit) std::this_thread::yield();
    std::vector<float> data(kOperations, static_cast<float>(rank + 1));
    std::vector<CollectiveHandle> handles;
    for (float& element : data) {
      handles.push_back(
          groups[static_cast<size_t>(rank)]->StartAllReduce(&element, 1, SumFloat32()));
      if (rank == 0) ++issued;
    }
    for (CollectiveHandle& handle : handles) {
      const Status status = handle.Wait();
      ASSERT_TRUE(status.ok()) << status;
    }
    for (const float element : data) ASSERT_EQ(element, 3.0f);
  });
}

TEST(NetworkTest, AFlightShowsWhatWasEnteredAndWhatBlocksTheRankAlsoAfterAnAbort) {
  LoopbackCluster cluster(2, {.hang_limit = milliseconds(80)});
  const std::vector<Communicator*> groups = Connected(cluster);
  std::vector<float> data(8, 1.0f);
  cluster.Run([&](int rank) {
    const size_t own = static_cast<size_t>(rank);
    ASSERT_TRUE(groups[own]->AllReduce(&data[own], 1, SumFloat32()).ok());
  });
  // No thread is blocked in an asynchronous operation.
  CollectiveHandle pending = groups[0]->StartAllReduce(&data[2], 2, SumFloat32());
  CollectiveFlight flight = cluster.network(0).Flights().at(0);
  EXPECT_EQ(flight.group, "data/0");
  EXPECT_EQ(flight.ranks, AllRanks(2));
  EXPECT_EQ(flight.entered, 2u);
  EXPECT_EQ(flight.blocked_in, 0u);
  EXPECT_EQ(cluster.network(1).Flights().at(0).entered, 1u);
  // The operation hangs while a thread waits for it.
  EXPECT_EQ(pending.Wait().code(), StatusCode::kDeadlineExceeded);
  flight = cluster.network(0).Flights().at(0);
  EXPECT_EQ(flight.entered, 2u);
  EXPECT_EQ(flight.blocked_in, 2u);
  EXPECT_EQ(flight.operation, CollectiveOperation::kAllReduce);
  EXPECT_EQ(flight.purpose, Purpose::kGradient);
  EXPECT_EQ(flight.bytes, 8u);
  EXPECT_GE(ToSeconds(flight.waited), 0.08);
}

TEST(NetworkTest, TheFlightRecorderKeepsTheLastOperationsOnly) {
  LoopbackCluster cluster(1, {.recorded_operations = 3});
  Communicator* group = Connected(cluster)[0];
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(group->Barrier().ok());
  const std::string json = cluster.network(0).FlightRecorderJson();
  EXPECT_EQ(json.find("\"sequence\": 6"), std::string::npos);
  for (const char* kept : {"\"sequence\": 7", "\"sequence\": 8", "\"sequence\": 9"})
    EXPECT_THAT(json, HasSubstr(kept));
}

TEST(NetworkTest, ADeadlineLeavesTheOperationPending) {
  LoopbackCluster cluster(2);
  const std::vector<Communicator*> groups = Connected(cluster);
  float sums[2] = {1, 2};
  CollectiveHandle handle = groups[0]->StartAllReduce(&sums[0], 1, SumFloat32());
  EXPECT_FALSE(handle.Test());
  EXPECT_EQ(handle.Wait(Now() + milliseconds(5)).code(), StatusCode::kDeadlineExceeded);
  std::thread late([&] { EXPECT_TRUE(groups[1]->AllReduce(&sums[1], 1, SumFloat32()).ok()); });
  EXPECT_TRUE(handle.Wait().ok());
  late.join();
  EXPECT_EQ(sums[0], 3);
  EXPECT_EQ(sums[1], 3);
}

TEST(NetworkTest, TheProgressThreadFinishesOperationsWhileNobodyWaits) {
  LoopbackCluster cluster(2);
  const std::vector<Communicator*> groups = Connected(cluster);
  std::vector<std::vector<float>> data(2, std::vector<float>(300000, 1.0f));
  CollectiveHandle first = groups[0]->StartAllReduce(data[0].data(), data[0].size(), SumFloat32());
  CollectiveHandle second = groups[1]->StartAllReduce(data[1].data(), data[1].size(), SumFloat32());
  // The test touches neither handle; only the flight recorder shows the progress.
  const MonotonicTime limit = Now() + kLimit;
  for (int rank = 0; rank < 2; ++rank) {
    while (cluster.network(rank).FlightRecorderJson().find("finished\"") == std::string::npos) {
      ASSERT_LT(Now(), limit);
      std::this_thread::yield();
    }
  }
  EXPECT_TRUE(first.Wait().ok());
  EXPECT_TRUE(second.Wait().ok());
  EXPECT_EQ(data[0], std::vector<float>(300000, 2.0f));
  EXPECT_EQ(data[0], data[1]);
}

TEST(NetworkTest, ManyOperationsInFlightAtOnceAllGiveTheirOwnResult) {
  LoopbackCluster cluster(3);
  const std::vector<Communicator*> groups = Connected(cluster);
  cluster.Run([&](int rank) {
    constexpr size_t kBuckets = 40;
    std::vector<std::vector<float>> buckets;
    std::vector<CollectiveHandle> handles;
    for (size_t i = 0; i < kBuckets; ++i) buckets.emplace_back(i * 997, static_cast<float>(i + 1));
    for (auto& bucket : buckets) {
      handles.push_back(groups[static_cast<size_t>(rank)]->StartAllReduce(
          bucket.data(), bucket.size(), SumFloat32()));
    }
    for (size_t i = kBuckets; i-- > 0;) {
      ASSERT_TRUE(handles[i].Wait().ok());
      EXPECT_EQ(buckets[i], std::vector<float>(i * 997, 3.0f * static_cast<float>(i + 1)));
    }
  });
}

TEST(NetworkTest, TwoThreadsOfARankUseTwoGroupsAtOnce) {
  LoopbackCluster cluster(2);
  std::vector<Communicator*> tensor(2);
  std::vector<Communicator*> data(2);
  cluster.Run([&](int rank) {
    tensor[static_cast<size_t>(rank)] = MakeGroup(cluster, rank, "one");
    data[static_cast<size_t>(rank)] = MakeGroup(cluster, rank, "two");
    ASSERT_TRUE(cluster.network(rank).Connect(cluster.addresses(), kLimit).ok());
  });
  cluster.Run([&](int rank) {
    const auto loop = [](Communicator* group) {
      for (int i = 0; i < 100; ++i) {
        float value = 1;
        ASSERT_TRUE(group->AllReduce(&value, 1, SumFloat32()).ok());
        ASSERT_EQ(value, 2);
      }
    };
    std::thread other(loop, tensor[static_cast<size_t>(rank)]);
    loop(data[static_cast<size_t>(rank)]);
    other.join();
  });
}

TEST(NetworkTest, RanksWhoseDigestsDifferAreNamedOnEveryRank) {
  LoopbackCluster cluster(4);
  const std::vector<Communicator*> groups = Connected(cluster);
  std::vector<Status> statuses(4);
  cluster.Run([&](int rank) {
    Communicator* group = groups[static_cast<size_t>(rank)];
    ASSERT_TRUE(group->CompareDigest(42).ok());
    OperationDigest digest(group->name());
    digest.Add(CollectiveOperation::kAllReduce, rank == 2 ? 128 : 64, "sum_float32",
               Purpose::kTensor);
    statuses[static_cast<size_t>(rank)] = group->CompareDigest(digest.value());
  });
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(Text(status), HasSubstr("group data/0 on axis data_replicate"));
    EXPECT_THAT(Text(status), HasSubstr("rank 2 (global rank 2)"));
    EXPECT_THAT(Text(status), testing::Not(HasSubstr("rank 1 ")));
  }
}

TEST(NetworkTest, TheRunningDigestDependsOnOrderBytesReductionAndPurpose) {
  const auto digest = [](const std::function<void(Communicator*)>& issue) {
    LoopbackCluster cluster(1);
    Communicator* group = Connected(cluster)[0];
    issue(group);
    return group->running_digest();
  };
  float data[4] = {};
  const auto sum = [&](size_t count, Purpose purpose) {
    return [&, count, purpose](Communicator* group) {
      EXPECT_TRUE(group->AllReduce(data, count, SumFloat32(), purpose).ok());
      EXPECT_TRUE(group->Barrier(Purpose::kControl).ok());
    };
  };
  const uint64_t base = digest(sum(2, Purpose::kTensor));
  EXPECT_EQ(base, digest(sum(2, Purpose::kTensor)));
  EXPECT_NE(base, digest(sum(3, Purpose::kTensor)));
  EXPECT_NE(base, digest(sum(2, Purpose::kSequence)));
  EXPECT_NE(base, digest([&](Communicator* group) {
              EXPECT_TRUE(group->AllReduce(data, 2, MaxFloat32(), Purpose::kTensor).ok());
              EXPECT_TRUE(group->Barrier(Purpose::kControl).ok());
            }));
  EXPECT_NE(base, digest([&](Communicator* group) {
              EXPECT_TRUE(group->Barrier(Purpose::kControl).ok());
              EXPECT_TRUE(group->AllReduce(data, 2, SumFloat32(), Purpose::kTensor).ok());
            }));
}

TEST(NetworkTest, StatisticsAddUpByOperationAxisAndPurpose) {
  LoopbackCluster cluster(2);
  const std::vector<Communicator*> groups = Connected(cluster);
  cluster.Run([&](int rank) {
    float data[8] = {};
    Communicator* group = groups[static_cast<size_t>(rank)];
    ASSERT_TRUE(group->AllReduce(data, 8, SumFloat32()).ok());
    ASSERT_TRUE(group->AllReduce(data, 4, SumFloat32()).ok());
    ASSERT_TRUE(group->AllReduce(data, 2, SumFloat32(), Purpose::kControl).ok());
  });
  const std::vector<CollectiveStatistics> statistics = cluster.network(0).Statistics();
  ASSERT_EQ(statistics.size(), 2u);
  EXPECT_EQ(statistics[0].operation, CollectiveOperation::kAllReduce);
  EXPECT_EQ(statistics[0].axis, "data_replicate");
  EXPECT_EQ(statistics[0].purpose, Purpose::kGradient);
  EXPECT_EQ(statistics[0].count, 2u);
  EXPECT_EQ(statistics[0].bytes, 48u);
  EXPECT_EQ(statistics[0].scope, Scope::kUnknown);
  EXPECT_GT(statistics[0].seconds, 0);
  EXPECT_EQ(std::accumulate(statistics[0].duration_counts.begin(),
                            statistics[0].duration_counts.end(), 0u),
            2u);
  EXPECT_EQ(statistics[1].purpose, Purpose::kControl);
  EXPECT_EQ(statistics[1].bytes, 8u);
}

TEST(NetworkTest, StatisticsDistinguishGroupsWithinAnIslandFromThoseAcrossIslands) {
  NetworkOptions options;
  options.islands = {7, 7, 9};
  LoopbackCluster cluster(3, options);
  std::vector<std::vector<Communicator*>> groups(3);
  for (const auto& [name, ranks] :
       {std::pair("near", std::vector<int>{0, 1}), std::pair("far", std::vector<int>{0, 1, 2})}) {
    for (const int rank : ranks) {
      groups[static_cast<size_t>(rank)].push_back(
          *cluster.network(rank).MakeCommunicator("data", Purpose::kGradient, ranks, name));
    }
  }
  cluster.Run([&](int rank) {
    ASSERT_TRUE(cluster.network(rank).Connect(cluster.addresses(), std::chrono::seconds(10)).ok());
    float data[8] = {};
    for (Communicator* group : groups[static_cast<size_t>(rank)])
      ASSERT_TRUE(group->AllReduce(data, 8, SumFloat32()).ok());
  });
  const std::vector<CollectiveStatistics> statistics = cluster.network(0).Statistics();
  ASSERT_EQ(statistics.size(), 2u);
  EXPECT_EQ(statistics[0].scope, Scope::kIsland);
  EXPECT_EQ(statistics[0].bus_bytes, 32.0);  // 2·(n-1)/n of 32 bytes
  EXPECT_EQ(statistics[1].scope, Scope::kAcross);
  EXPECT_DOUBLE_EQ(statistics[1].bus_bytes, 32.0 * 4 / 3);
}

// Connects two networks of one fabric with different options; returns the statuses of Connect.
std::vector<Status> ConnectPair(const NetworkOptions& first, const NetworkOptions& second) {
  LoopbackFabric fabric(2);
  std::vector<NetworkOptions> options = {first, second};
  std::vector<std::unique_ptr<CollectiveNetwork>> networks;
  std::vector<std::string> addresses;
  for (int rank = 0; rank < 2; ++rank) {
    NetworkOptions own = options[static_cast<size_t>(rank)];
    own.rank = rank;
    own.ranks = 2;
    networks.push_back(*CollectiveNetwork::Make(own, fabric.MakeTransport(rank)));
    EXPECT_TRUE(networks.back()->MakeCommunicator("data", Purpose::kGradient, {0, 1}, "data").ok());
    addresses.push_back(networks.back()->address());
  }
  std::vector<Status> statuses(2);
  std::thread other([&] { statuses[1] = networks[1]->Connect(addresses, kLimit); });
  statuses[0] = networks[0]->Connect(addresses, kLimit);
  other.join();
  return statuses;
}

TEST(NetworkTest, AWrongKeyIsRefusedByBothSides) {
  NetworkOptions wrong;
  wrong.group_key[31] = 1;
  for (const Status& status : ConnectPair({}, wrong)) {
    EXPECT_EQ(status.code(), StatusCode::kPermissionDenied);
    EXPECT_THAT(Text(status), HasSubstr("does not know the key of group epoch 0"));
  }
}

TEST(NetworkTest, AStaleGroupEpochIsRefusedByBothSides) {
  const std::vector<Status> statuses = ConnectPair({.group_epoch = 7}, {.group_epoch = 6});
  EXPECT_EQ(statuses[0].code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Text(statuses[0]), "rank 1 belongs to group epoch 6, not to 7");
  EXPECT_EQ(Text(statuses[1]), "rank 0 belongs to group epoch 7, not to 6");
}

TEST(NetworkTest, ARankThatDoesNotConnectIsNamed) {
  LoopbackCluster cluster(2);
  MakeGroup(cluster, 0);
  const Status status = cluster.network(0).Connect(cluster.addresses(), milliseconds(20));
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Text(status), HasSubstr("rank 1 did not complete the handshake"));
  EXPECT_TRUE(cluster.network(0).aborted());
}

TEST(NetworkTest, BadGroupsAndArgumentsAreRefusedByNameAndValue) {
  LoopbackCluster cluster(2);
  CollectiveNetwork& network = cluster.network(0);
  const auto refusal = [&](const std::vector<int>& ranks, const std::string& name) {
    return Text(network.MakeCommunicator("tensor", Purpose::kTensor, ranks, name).status());
  };
  EXPECT_EQ(refusal({0, 2}, "a"), "group a: rank 2 is not in [0, 2)");
  EXPECT_EQ(refusal({0, 0}, "a"), "group a: rank 0 appears twice");
  EXPECT_EQ(refusal({1}, "a"), "group a: rank 0 is not in it");
  auto own = network.MakeCommunicator("tensor", Purpose::kTensor, {0}, "own");
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(refusal({0}, "own"), "group own: the name is in use");
  auto both = network.MakeCommunicator("tensor", Purpose::kTensor, {0, 1}, "both");
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(Text((*both)->Barrier()), "group both: the network is not connected yet");

  // A group of one rank works without a connection.
  float data[2] = {1, 2};
  EXPECT_TRUE((*own)->AllReduce(data, 2, SumFloat32()).ok());
  const std::vector<size_t> counts = {1, 1};
  EXPECT_EQ(Text((*own)->ReduceScatter(data, data, counts, SumFloat32())),
            "reduce_scatter of group own: 2 counts for 1 ranks");
  EXPECT_EQ(Text((*own)->Send(data, 4, 0)),
            "send of group own: rank 0 is not another one of its 1 ranks");
  EXPECT_EQ(Text((*own)->Broadcast(data, 4, 3)),
            "broadcast of group own: rank 3 is not one of its 1 ranks");

  LoopbackFabric fabric(1);
  EXPECT_EQ(
      Text(CollectiveNetwork::Make({.rank = 1, .ranks = 1}, fabric.MakeTransport(0)).status()),
      "rank 1 is not in [0, ranks 1)");
}

TEST(NetworkTest, ADifferentLengthAtThePeerIsAnErrorThatAborts) {
  LoopbackCluster cluster(2, {.hang_limit = milliseconds(300)});
  const std::vector<Communicator*> groups = Connected(cluster);
  std::vector<Status> statuses(2);
  cluster.Run([&](int rank) {
    char data[64] = {};
    Communicator* group = groups[static_cast<size_t>(rank)];
    statuses[static_cast<size_t>(rank)] =
        rank == 0 ? group->Send(data, 32, 1) : group->Receive(data, 64, 0);
  });
  EXPECT_EQ(statuses[1].code(), StatusCode::kInternal);
  EXPECT_EQ(Text(statuses[1]),
            "receive of group data/0, sequence 0: rank 0 sent 32 bytes where 64 were expected");
}

TEST(NetworkTest, CloseEndsPendingOperationsAndAllLaterOnes) {
  LoopbackCluster cluster(2);
  const std::vector<Communicator*> groups = Connected(cluster);
  std::vector<float> data(10000);
  CollectiveHandle handle = groups[0]->StartAllReduce(data.data(), data.size(), SumFloat32());
  EXPECT_TRUE(cluster.network(0).Close(kLimit).ok());
  EXPECT_EQ(handle.Wait().code(), StatusCode::kCancelled);
  EXPECT_EQ(groups[0]->Barrier().code(), StatusCode::kCancelled);
  EXPECT_TRUE(cluster.network(0).Close(kLimit).ok());
}

}  // namespace
}  // namespace troupe
