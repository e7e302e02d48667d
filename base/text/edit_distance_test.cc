#include "base/text/edit_distance.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(EditDistanceTest, EqualWordsDoNotDiffer) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("steps", "steps"), 0u);
}

TEST(EditDistanceTest, AMissingAddedOrOtherLetterCountsOne) {
  EXPECT_EQ(EditDistance("steps", "step"), 1u);
  EXPECT_EQ(EditDistance("step", "steps"), 1u);
  EXPECT_EQ(EditDistance("steps", "stops"), 1u);
  EXPECT_EQ(EditDistance("", "seed"), 4u);
  EXPECT_EQ(EditDistance("seed", ""), 4u);
}

TEST(EditDistanceTest, SwappedNeighboursCountOne) {
  EXPECT_EQ(EditDistance("setps", "steps"), 1u);
  EXPECT_EQ(EditDistance("ab", "ba"), 1u);
}

TEST(EditDistanceTest, DifferencesAddUp) {
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
  EXPECT_EQ(EditDistance("sitting", "kitten"), 3u);
  // Letters that were swapped are not changed again.
  EXPECT_EQ(EditDistance("ca", "abc"), 3u);
}

}  // namespace
}  // namespace troupe
