#include "coordinator/history/step_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace troupe {
namespace {

std::set<int64_t> KeptAfter(int64_t steps, const std::vector<int64_t>& kept_every,
                            const HistoryResolution& resolution) {
  std::set<int64_t> kept;
  for (int64_t step = 1; step <= steps; ++step) {
    kept.insert(step);
    for (const int64_t old : StepsToDrop(step, kept_every, resolution)) {
      EXPECT_EQ(kept.erase(old), 1u) << old << " is dropped twice, at " << step;
    }
  }
  return kept;
}

TEST(StepHistory, KeepsTheNewestStepsAndEverFewerOfTheOlder) {
  const HistoryResolution resolution{.newest = 64, .thinning = 4};
  const std::set<int64_t> kept = KeptAfter(5000, {}, resolution);
  for (int64_t step = 1; step <= 5000; ++step) {
    int64_t every = 1;
    for (int64_t age = 64; 5000 - step >= age; age *= 4) every *= 4;
    EXPECT_EQ(kept.contains(step), step % every == 0) << step;
  }
  EXPECT_LT(kept.size(), 300u);
}

TEST(StepHistory, RowsThatFewStepsHaveStay) {
  const std::set<int64_t> kept = KeptAfter(2000, {100, 0, 2}, {.newest = 64, .thinning = 4});
  for (int64_t step = 100; step <= 2000; step += 100) EXPECT_TRUE(kept.contains(step)) << step;
  EXPECT_FALSE(kept.contains(2)) << "every second step is most";
}

TEST(StepHistory, NothingGoesFromAJobOfUsualLength) {
  EXPECT_EQ(KeptAfter(65536, {}, {}).size(), 65536u);
  EXPECT_EQ(StepsToDrop(65537, {}), (std::vector<int64_t>{1}));
  EXPECT_THAT(StepsToDrop(65536 + 16, {}), testing::IsEmpty());
  // At a million steps: the newest 65536, and every 16th of the older ones.
  EXPECT_EQ(StepsToDrop(1'000'003, {}), (std::vector<int64_t>{1'000'003 - 65536}));
}

}  // namespace
}  // namespace troupe
