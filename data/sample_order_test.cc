#include "data/sample_order.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace troupe {
namespace {

TEST(SampleOrder, EveryEpochHoldsEveryRowExactlyOnce) {
  for (const int64_t n : {1, 2, 3, 4, 5, 15, 16, 17, 100, 1023, 1025, 4097}) {
    const SampleOrder order(42, n);
    for (const int64_t epoch : {0, 1, 7}) {
      std::vector<int> seen(static_cast<size_t>(n), 0);
      for (int64_t i = 0; i < n; ++i) {
        const int64_t row = order.Row(epoch * n + i);
        ASSERT_GE(row, 0);
        ASSERT_LT(row, n);
        ++seen[static_cast<size_t>(row)];
      }
      for (const int count : seen) ASSERT_EQ(count, 1) << n;
    }
  }
}

TEST(SampleOrder, EpochsAndSeedsHaveOrdersOfTheirOwn) {
  const int64_t n = 1000;
  const SampleOrder a(1, n), b(2, n);
  int same_epoch = 0, same_seed = 0, in_place = 0;
  for (int64_t i = 0; i < n; ++i) {
    same_epoch += a.Row(i) == a.Row(n + i);
    same_seed += a.Row(i) == b.Row(i);
    in_place += a.Row(i) == i;
  }
  // Two random permutations are expected to coincide at one position.
  EXPECT_LT(same_epoch, 10);
  EXPECT_LT(same_seed, 10);
  EXPECT_LT(in_place, 10);
}

TEST(SampleOrder, MixesWell) {
  // Neighbouring positions are far apart in the data: the mean distance of two uniform rows is n /
  // 3.
  const int64_t n = 10000;
  const SampleOrder order(9, n);
  double distance = 0;
  for (int64_t i = 0; i + 1 < n; ++i) {
    distance += std::abs(static_cast<double>(order.Row(i) - order.Row(i + 1)));
  }
  EXPECT_NEAR(distance / (n - 1), n / 3.0, n * 0.02);
}

TEST(SampleOrder, SmallEpochsReachEveryOrder) {
  std::set<std::vector<int64_t>> orders;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const SampleOrder order(seed, 4);
    orders.insert({order.Row(0), order.Row(1), order.Row(2), order.Row(3)});
  }
  EXPECT_EQ(orders.size(), 24u);
}

TEST(SampleOrder, IsTheSameOnEveryMachineForever) {
  // Golden values, computed from the definition by an independent program: a change here would
  // repeat and skip samples in every resumed job.
  const SampleOrder order(1, 1000);
  std::vector<int64_t> rows;
  for (const int64_t place : {0, 1, 2, 999, 1000, 123456789}) rows.push_back(order.Row(place));
  EXPECT_EQ(rows, (std::vector<int64_t>{428, 323, 823, 196, 746, 115}));
}

TEST(SampleOrder, FindsRowsOfEnormousEpochs) {
  const int64_t n = int64_t{1} << 62;
  const SampleOrder order(1, n);
  EXPECT_NE(order.Row(0), order.Row(1));
  EXPECT_LT(order.Row(n - 1), n);
  EXPECT_GE(order.Row(n - 1), 0);
}

}  // namespace
}  // namespace troupe
