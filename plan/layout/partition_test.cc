#include "plan/layout/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "base/random.h"

namespace troupe {
namespace {

double Largest(const Partition& partition) {
  return *std::max_element(partition.piece_cost.begin(), partition.piece_cost.end());
}

// The smallest maximum cost over all ways to cut.
double BruteForce(const PartitionCosts& costs, int pieces) {
  const int blocks = static_cast<int>(costs.blocks.size());
  std::function<double(int, int)> best = [&](int begin, int left) {
    double cost = begin == 0 ? costs.embedding : 0;
    double least = std::numeric_limits<double>::infinity();
    for (int end = begin + 1; end <= blocks - (left - 1); ++end) {
      cost += costs.blocks[end - 1];
      if (left == 1 && end < blocks) continue;
      const double rest = left == 1 ? 0 : best(end, left - 1);
      least = std::min(least, std::max(cost + (end == blocks ? costs.head : 0), rest));
    }
    return least;
  };
  return best(0, pieces);
}

TEST(PartitionTest, AHeavyHeadShortensTheLastStage) {
  const auto partition = PartitionByCost({std::vector<double>(8, 1.0), 0, 4.0}, 2);
  ASSERT_TRUE(partition.ok());
  EXPECT_EQ(partition->first_block, (std::vector<int>{0, 6}));
  EXPECT_EQ(partition->piece_cost, (std::vector<double>{6, 6}));
  EXPECT_EQ(partition->imbalance(), 1.0);
}

TEST(PartitionTest, EqualsBruteForceOnRandomCosts) {
  const uint64_t key = RandomKey(7, "partition_test");
  uint64_t draw = 0;
  const auto next = [&] { return Uniform(key, draw++); };
  for (int round = 0; round < 300; ++round) {
    PartitionCosts costs;
    const int blocks = 1 + static_cast<int>(next() * 9);
    for (int i = 0; i < blocks; ++i) costs.blocks.push_back(next() < 0.2 ? 0 : next() * 10);
    costs.embedding = next() * 5;
    costs.head = next() * 20;
    const int pieces = 1 + static_cast<int>(next() * blocks);
    const auto partition = PartitionByCost(costs, pieces);
    ASSERT_TRUE(partition.ok());
    EXPECT_NEAR(Largest(*partition), BruteForce(costs, pieces), 1e-9);
    ASSERT_EQ(partition->first_block.size(), static_cast<size_t>(pieces));
    EXPECT_EQ(partition->first_block[0], 0);
    for (int p = 1; p < pieces; ++p) {
      EXPECT_LT(partition->first_block[p - 1], partition->first_block[p]);
    }
  }
}

TEST(PartitionTest, FewerBlocksThanPiecesAreRefused) {
  const auto partition = PartitionByCost({{1, 1, 1}, 0, 0}, 4);
  EXPECT_EQ(partition.status().code(), StatusCode::kInvalidArgument);
}

TEST(PartitionTest, SplitPointsAreTakenAsGivenOrRefused) {
  const PartitionCosts costs{std::vector<double>(4, 1.0), 0, 0};
  EXPECT_EQ(PartitionAt(costs, {1})->piece_cost, (std::vector<double>{1, 3}));
  EXPECT_FALSE(PartitionAt(costs, {0}).ok());
  EXPECT_FALSE(PartitionAt(costs, {4}).ok());
  EXPECT_FALSE(PartitionAt(costs, {2, 2}).ok());
}

}  // namespace
}  // namespace troupe
