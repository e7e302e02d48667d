#include "collective/reduction.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace troupe {
namespace {

TEST(ReductionTest, Bfloat16SumsRoundToNearestEven) {
  std::mt19937 random(1);
  std::vector<uint16_t> a(4099);
  std::vector<uint16_t> b(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    // Finite values with moderate exponents.
    a[i] = static_cast<uint16_t>((random() & 0x807F) | ((120 + random() % 12) << 7));
    b[i] = static_cast<uint16_t>((random() & 0x807F) | ((120 + random() % 12) << 7));
  }
  std::vector<uint16_t> sum = a;
  SumBfloat16().combine(nullptr, sum.data(), b.data(), sum.size());
  const auto value = [](uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); };
  for (size_t i = 0; i < a.size(); ++i) {
    const double exact = double{value(a[i])} + value(b[i]);
    const double error = std::abs(value(sum[i]) - exact);
    for (const int step : {-1, 1}) {
      const uint16_t neighbour = static_cast<uint16_t>(sum[i] + step);
      const double other = std::abs(value(neighbour) - exact);
      ASSERT_LE(error, other) << i;
      if (error == other) {
        ASSERT_EQ(sum[i] % 2, 0) << i;
      }
    }
  }
}

TEST(ReductionTest, Bfloat16SumKeepsInfinityAndNan) {
  uint16_t a[] = {0x7F80, 0x7F80, 0x7FC1, 0x7F7F};
  const uint16_t b[] = {0x3F80, 0xFF80, 0x3F80, 0x7F7F};
  SumBfloat16().combine(nullptr, a, b, 4);
  EXPECT_EQ(a[0], 0x7F80);
  EXPECT_GT(a[1] & 0x7FFF, 0x7F80);
  EXPECT_GT(a[2] & 0x7FFF, 0x7F80);
  EXPECT_EQ(a[3], 0x7F80);
}

TEST(ReductionTest, FloatsTravelAsTheNearestBfloat16) {
  const Reduction sum = SumFloat32AsBfloat16();
  // A value halfway between two bfloat16 numbers is rounded to the even one.
  const float values[] = {1.0f,
                          1.0f + 0x1p-8f,
                          1.0f + 0x3p-8f,
                          -3.14159274f,
                          std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()};
  uint16_t wire[6];
  float back[6];
  sum.pack(values, wire, 6);
  sum.unpack(wire, back, 6);
  EXPECT_EQ(back[0], 1.0f);
  EXPECT_EQ(back[1], 1.0f);
  EXPECT_EQ(back[2], 1.0f + 0x1p-6f);
  EXPECT_EQ(back[3], -3.140625f);
  EXPECT_EQ(back[4], values[4]);
  EXPECT_TRUE(std::isnan(back[5]));
  float total[] = {1.0f + 0x1p-20f};
  sum.combine(nullptr, total, wire, 1);
  EXPECT_EQ(total[0], 2.0f + 0x1p-20f) << "the sum keeps the bits of float32";
}

TEST(ReductionTest, MaxIsCommutativeBitForBit) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {0.0f,    -0.0f,    1.5f,      -1.5f, 1e-45f,
                                     -1e-45f, infinity, -infinity, nan,   -nan};
  for (const float x : values) {
    for (const float y : values) {
      float xy = x;
      float yx = y;
      MaxFloat32().combine(nullptr, &xy, &y, 1);
      MaxFloat32().combine(nullptr, &yx, &x, 1);
      EXPECT_EQ(std::bit_cast<uint32_t>(xy), std::bit_cast<uint32_t>(yx)) << x << " " << y;
      if (std::isnan(x) || std::isnan(y)) {
        EXPECT_TRUE(std::isnan(xy));
      } else {
        EXPECT_EQ(xy, std::max(x, y));
      }
    }
  }
}

TEST(ReductionTest, SumsAddElementByElement) {
  std::vector<double> a = {1, 2, 3};
  SumFloat64().combine(nullptr, a.data(), std::vector<double>{10, 20, 30}.data(), 3);
  EXPECT_EQ(a, (std::vector<double>{11, 22, 33}));
  std::vector<float> b = {1, 2, 3};
  SumFloat32().combine(nullptr, b.data(), std::vector<float>{10, 20, 30}.data(), 3);
  EXPECT_EQ(b, (std::vector<float>{11, 22, 33}));
}

}  // namespace
}  // namespace troupe
