#include "base/random.h"

#include <gtest/gtest.h>

#include <cmath>

namespace troupe {
namespace {

// Known answers from the Random123 distribution (kat_vectors, philox4x32 10).
TEST(Random, PhiloxGivesThePublishedAnswers) {
  EXPECT_EQ(Philox4x32(0, 0, 0),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32(~0ull, ~0ull, ~0ull),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Random, NormalHasMeanZeroAndVarianceOne) {
  const uint64_t key = RandomKey(7, "test");
  double sum = 0, squares = 0;
  constexpr int kCount = 200000;
  for (int i = 0; i < kCount; ++i) {
    const double x = Normal(key, i);
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kCount, 0.0, 0.01);
  EXPECT_NEAR(squares / kCount, 1.0, 0.01);
}

TEST(Random, KeysDifferByPurposeAndSeed) {
  EXPECT_NE(RandomKey(1, "a"), RandomKey(1, "b"));
  EXPECT_NE(RandomKey(1, "a"), RandomKey(2, "a"));
}

}  // namespace
}  // namespace troupe
