#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "collective/loopback/loopback_cluster.h"
#include "collective/network.h"

namespace troupe {
namespace {

constexpr Duration kOperationLimit = std::chrono::seconds(20);
// None, one, odd, several times the ring's threshold, more than one message per rank.
constexpr size_t kCounts[] = {0, 1, 37, 5000, 150001};

// Runs the ranks of one group over loopback; `body` receives the communicator.
void RunGroup(int ranks, const std::function<void(Communicator&)>& body) {
  LoopbackCluster cluster(ranks);
  std::vector<int> all(static_cast<size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  cluster.Run([&](int rank) {
    auto communicator =
        cluster.network(rank).MakeCommunicator("tensor", Purpose::kTensor, all, "tensor/0");
    ASSERT_TRUE(communicator.ok()) << communicator.status();
    const Status connected = cluster.network(rank).Connect(cluster.addresses(), kOperationLimit);
    ASSERT_TRUE(connected.ok()) << connected;
    body(**communicator);
  });
}

// A value in [-1, 1) that uses all 24 bits of precision, so that sums round.
float Value(int rank, size_t index) {
  uint64_t bits = (static_cast<uint64_t>(rank + 1) << 40 | index) * 0x9E3779B97F4A7C15u;
  bits = (bits ^ (bits >> 32)) * 0xD6E8FEB86659FD93u;
  return static_cast<float>(bits >> 40) * 0x1p-23f - 1.0f;
}

std::vector<float> Values(int rank, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = Value(rank, i);
  return values;
}

double Sum(int ranks, size_t index) {
  double sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += Value(rank, index);
  return sum;
}

// The error bound of a sum of `ranks` numbers below 1, with each partial sum rounded.
double Tolerance(int ranks) { return ranks * ranks * 6e-8; }

class OperationsTest : public testing::TestWithParam<int> {
 protected:
  int ranks() const { return GetParam(); }
};

TEST_P(OperationsTest, AllReduceGivesTheSumWithTheSameBitsOnAllRanksAndInEveryRun) {
  for (const size_t count : kCounts) {
    std::vector<std::vector<float>> first(static_cast<size_t>(ranks()));
    for (int run = 0; run < 2; ++run) {
      std::vector<std::vector<float>> results(static_cast<size_t>(ranks()));
      RunGroup(ranks(), [&](Communicator& group) {
        std::vector<float> data = Values(group.rank(), count);
        const Status status = group.AllReduce(data.data(), count, SumFloat32());
        ASSERT_TRUE(status.ok()) << status;
        results[static_cast<size_t>(group.rank())] = std::move(data);
      });
      for (int rank = 0; rank < ranks(); ++rank) {
        ASSERT_EQ(results[static_cast<size_t>(rank)].size(), count);
        ASSERT_EQ(results[static_cast<size_t>(rank)], results[0]) << "rank " << rank;
      }
      for (size_t i = 0; i < count; ++i)
        ASSERT_NEAR(results[0][i], Sum(ranks(), i), Tolerance(ranks())) << i;
      if (run == 0) {
        first = results;
      } else {
        EXPECT_EQ(first, results);
      }
    }
  }
}

TEST_P(OperationsTest, ReduceScatterGivesEachRankItsBlockOfTheSum) {
  for (const size_t count : kCounts) {
    RunGroup(ranks(), [&](Communicator& group) {
      const size_t total = count * static_cast<size_t>(ranks());
      const size_t begin = count * static_cast<size_t>(group.rank());
      std::vector<float> data = Values(group.rank(), total);
      std::vector<float> output(count);
      ASSERT_TRUE(group.ReduceScatter(data.data(), output.data(), count, SumFloat32()).ok());
      for (size_t i = 0; i < count; ++i)
        ASSERT_NEAR(output[i], Sum(ranks(), begin + i), Tolerance(ranks())) << i;

      data = Values(group.rank(), total);
      ASSERT_TRUE(group.ReduceScatter(data.data(), data.data() + begin, count, SumFloat32()).ok());
      for (size_t i = 0; i < count; ++i) ASSERT_EQ(data[begin + i], output[i]) << i;
    });
  }
}

TEST_P(OperationsTest, UnevenBlocksReduceScatterAndGatherBackToTheAllReduce) {
  for (const size_t count : kCounts) {
    RunGroup(ranks(), [&](Communicator& group) {
      // Blocks of count, 0, 3 count, 0, 5 count …
      std::vector<size_t> counts;
      std::vector<size_t> bytes;
      std::vector<size_t> offsets = {0};
      for (int rank = 0; rank < ranks(); ++rank) {
        counts.push_back(rank % 2 == 1 ? 0 : count * static_cast<size_t>(1 + rank));
        bytes.push_back(counts.back() * sizeof(float));
        offsets.push_back(offsets.back() + counts.back());
      }
      const size_t own = static_cast<size_t>(group.rank());
      std::vector<float> data = Values(group.rank(), offsets.back());
      std::vector<float> block(counts[own]);
      ASSERT_TRUE(group.ReduceScatter(data.data(), block.data(), counts, SumFloat32()).ok());
      std::vector<float> whole(offsets.back(), -1.0f);
      ASSERT_TRUE(group.AllGather(block.data(), whole.data(), bytes).ok());
      for (size_t i = 0; i < whole.size(); ++i)
        ASSERT_NEAR(whole[i], Sum(ranks(), i), Tolerance(ranks())) << i;
    });
  }
}

// The value of a float after transfer as bfloat16.
float Packed(float value) {
  const Reduction reduction = SumFloat32AsBfloat16();
  uint16_t wire = 0;
  reduction.pack(&value, &wire, 1);
  reduction.unpack(&wire, &value, 1);
  return value;
}

TEST_P(OperationsTest, SumsOfNumbersSentAsBfloat16AreMadeInFloat32AndRoundedOnce) {
  for (const size_t count : kCounts) {
    RunGroup(ranks(), [&](Communicator& group) {
      const size_t total = count * static_cast<size_t>(ranks());
      const size_t begin = count * static_cast<size_t>(group.rank());
      std::vector<float> data = Values(group.rank(), total);
      std::vector<float> output(count);
      ASSERT_TRUE(
          group.ReduceScatter(data.data(), output.data(), count, SumFloat32AsBfloat16()).ok());
      for (size_t i = 0; i < count; ++i) {
        float sum = Value(group.rank(), begin + i);
        for (int k = 1; k < ranks(); ++k)
          sum += Packed(Value((group.rank() + ranks() - k) % ranks(), begin + i));
        ASSERT_EQ(output[i], sum) << i;
      }
    });
  }
}

TEST_P(OperationsTest, AllReduceAsBfloat16GivesTheSameBitsOnAllRanksInHalfTheBytes) {
  for (const size_t count : kCounts) {
    std::vector<std::vector<float>> results(static_cast<size_t>(ranks()));
    RunGroup(ranks(), [&](Communicator& group) {
      std::vector<float> data = Values(group.rank(), count);
      const Status status = group.AllReduce(data.data(), count, SumFloat32AsBfloat16());
      ASSERT_TRUE(status.ok()) << status;
      results[static_cast<size_t>(group.rank())] = std::move(data);
    });
    for (int rank = 0; rank < ranks(); ++rank)
      ASSERT_EQ(results[static_cast<size_t>(rank)], results[0]) << "rank " << rank;
    for (size_t i = 0; i < count; ++i) {
      // Inputs are below 1, each off by at most 2^-9; the sum is rounded once.
      const double sum = Sum(ranks(), i);
      ASSERT_NEAR(results[0][i], sum, ranks() * 0x1p-9 + std::abs(sum) * 0x1p-8) << i;
      if (ranks() > 1) {
        ASSERT_EQ(results[0][i], Packed(results[0][i])) << i;
      }
    }
  }
}

TEST_P(OperationsTest, AllGatherPutsTheBlocksInGroupOrder) {
  for (const size_t count : kCounts) {
    RunGroup(ranks(), [&](Communicator& group) {
      const std::vector<float> own = Values(group.rank(), count);
      std::vector<float> all(count * static_cast<size_t>(ranks()));
      ASSERT_TRUE(group.AllGather(own.data(), all.data(), count * sizeof(float)).ok());
      for (int rank = 0; rank < ranks(); ++rank) {
        for (size_t i = 0; i < count; ++i) {
          ASSERT_EQ(all[static_cast<size_t>(rank) * count + i], Value(rank, i)) << rank << " " << i;
        }
      }
    });
  }
}

TEST_P(OperationsTest, AllToAllTransposesBlocksWithAndWithoutCounts) {
  for (const size_t count : kCounts) {
    RunGroup(ranks(), [&](Communicator& group) {
      const size_t n = static_cast<size_t>(ranks());
      const std::vector<float> input = Values(group.rank(), count * n);
      std::vector<float> output(count * n);
      ASSERT_TRUE(group.AllToAll(input.data(), output.data(), count * sizeof(float)).ok());
      const size_t own = static_cast<size_t>(group.rank());
      for (int rank = 0; rank < ranks(); ++rank) {
        for (size_t i = 0; i < count; ++i) {
          ASSERT_EQ(output[static_cast<size_t>(rank) * count + i], Value(rank, own * count + i));
        }
      }

      // Rank s sends (s + r) % 3 * count floats to rank r.
      const auto amount = [&](size_t s, size_t r) { return (s + r) % 3 * count; };
      std::vector<size_t> send;
      std::vector<size_t> receive;
      size_t sent = 0;
      size_t received = 0;
      for (size_t r = 0; r < n; ++r) {
        send.push_back(amount(own, r) * sizeof(float));
        receive.push_back(amount(r, own) * sizeof(float));
        sent += amount(own, r);
        received += amount(r, own);
      }
      const std::vector<float> rows = Values(group.rank(), sent);
      std::vector<float> arrived(received);
      ASSERT_TRUE(group.AllToAll(rows.data(), arrived.data(), send, receive).ok());
      size_t at = 0;
      for (size_t s = 0; s < n; ++s) {
        size_t from = 0;
        for (size_t r = 0; r < own; ++r) from += amount(s, r);
        for (size_t i = 0; i < amount(s, own); ++i) {
          ASSERT_EQ(arrived[at++], Value(static_cast<int>(s), from + i)) << s << " " << i;
        }
      }
    });
  }
}

TEST_P(OperationsTest, BroadcastFromEveryRootReachesAll) {
  for (const size_t count : kCounts) {
    RunGroup(ranks(), [&](Communicator& group) {
      for (int root = 0; root < ranks(); ++root) {
        std::vector<float> data = Values(group.rank(), count);
        ASSERT_TRUE(group.Broadcast(data.data(), count * sizeof(float), root).ok());
        ASSERT_EQ(data, Values(root, count));
      }
    });
  }
}

TEST_P(OperationsTest, SendsTravelAroundTheRanksWhileTheReceiveIsOpen) {
  if (ranks() == 1) GTEST_SKIP() << "one rank has nobody to send to";
  for (const size_t count : kCounts) {
    LoopbackCluster cluster(ranks());
    cluster.Run([&](int rank) {
      const int next = (rank + 1) % ranks();
      const int last = (rank + ranks() - 1) % ranks();
      CollectiveNetwork& network = cluster.network(rank);
      const auto link = [&](int from, int to) {
        return network.MakeCommunicator("pipe", Purpose::kPipe, {from, to},
                                        fmt::format("pipe/{}>{}", from, to));
      };
      auto out = link(rank, next);
      auto in = link(last, rank);
      ASSERT_TRUE(out.ok() && in.ok());
      ASSERT_TRUE(network.Connect(cluster.addresses(), kOperationLimit).ok());
      const std::vector<float> sent = Values(rank, count);
      std::vector<float> received(count);
      const size_t bytes = count * sizeof(float);
      CollectiveHandle receive = (*in)->StartReceive(received.data(), bytes, 0);
      CollectiveHandle send = (*out)->StartSend(sent.data(), bytes, 1);
      ASSERT_TRUE(receive.Wait().ok());
      ASSERT_TRUE(send.Wait().ok());
      EXPECT_EQ(received, Values(last, count));
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, OperationsTest, testing::Values(1, 2, 3, 4, 5, 8),
                         [](const auto& info) { return fmt::format("{}Ranks", info.param); });

}  // namespace
}  // namespace troupe
