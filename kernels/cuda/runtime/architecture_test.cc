#include "kernels/cuda/runtime/architecture.h"

#include <gtest/gtest.h>

namespace troupe::kernels::cuda {
namespace {

TEST(Architecture, OfALetterRunsOnItsOwnCapabilityAlone) {
  EXPECT_TRUE(Runs("90a", 9, 0));
  EXPECT_TRUE(Runs("100a", 10, 0));
  EXPECT_FALSE(Runs("100a", 10, 3));
  EXPECT_FALSE(Runs("90a", 10, 0));
  EXPECT_FALSE(Runs("90a", 8, 0));
}

TEST(Architecture, WithoutALetterRunsOnLaterOnesOfItsMajorNumber) {
  EXPECT_TRUE(Runs("80", 8, 0));
  EXPECT_TRUE(Runs("80", 8, 9));
  EXPECT_FALSE(Runs("86", 8, 0));
  EXPECT_FALSE(Runs("80", 9, 0));
}

}  // namespace
}  // namespace troupe::kernels::cuda
