#include "base/text/count_text.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace troupe {
namespace {

TEST(CountText, OnlyOneIsSingular) {
  EXPECT_EQ(CountText(1, "step"), "1 step");
  EXPECT_EQ(CountText(0, "step"), "0 steps");
  EXPECT_EQ(CountText(2, "step"), "2 steps");
  EXPECT_EQ(CountText(size_t{1}, "step"), "1 step");
  EXPECT_EQ(CountText(int64_t{12'345}, "step"), "12345 steps");
}

TEST(CountText, WordsThatChangeInOtherWaysAreStated) {
  EXPECT_EQ(CountText(1, "recovery", "recoveries"), "1 recovery");
  EXPECT_EQ(CountText(3, "recovery", "recoveries"), "3 recoveries");
  EXPECT_EQ(CountText(1, "is free", "are free"), "1 is free");
  EXPECT_EQ(CountText(0, "is free", "are free"), "0 are free");
}

}  // namespace
}  // namespace troupe
