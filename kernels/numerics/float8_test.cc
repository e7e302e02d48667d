#include "kernels/numerics/float8.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/numerics/value_encoding.h"
#include "kernels/testing/testing.h"

namespace troupe::kernels {
namespace {

struct Format {
  Float8Format format;
  int exponent_bits, mantissa_bits, bias;
  double largest;
};
constexpr Format kFormats[] = {{Float8Format::kE4M3, 4, 3, 7, 448},
                               {Float8Format::kE5M2, 5, 2, 15, 57344}};

// Decodes by the definition of the formats, with infinity and NaN as in the specification.
double NumberOf(const Format& format, int code) {
  const int exponent = code >> format.mantissa_bits & ((1 << format.exponent_bits) - 1);
  const int mantissa = code & ((1 << format.mantissa_bits) - 1);
  const double sign = code & 0x80 ? -1 : 1;
  if (format.format == Float8Format::kE4M3 && (code & 0x7F) == 0x7F) return NAN;
  if (format.format == Float8Format::kE5M2 && exponent == 31)
    return mantissa == 0 ? sign * INFINITY : NAN;
  const double fraction = std::ldexp(mantissa, -format.mantissa_bits);
  return sign * (exponent == 0 ? std::ldexp(fraction, 1 - format.bias)
                               : std::ldexp(1 + fraction, exponent - format.bias));
}

// The codes of the finite numbers from 0 up.
std::vector<int> FiniteCodes(const Format& format) {
  std::vector<int> codes;
  for (int code = 0; code < 128; ++code) {
    if (std::isfinite(NumberOf(format, code))) codes.push_back(code);
  }
  return codes;
}

TEST(Float8, EveryCodeIsTheNumberOfItsDefinitionAndComesBack) {
  for (const Format& format : kFormats) {
    for (int code = 0; code < 256; ++code) {
      const double due = NumberOf(format, code);
      const float number = FromFloat8(format.format, static_cast<uint8_t>(code));
      if (std::isnan(due)) {
        EXPECT_TRUE(std::isnan(number)) << code;
      } else {
        EXPECT_EQ(number, due) << code;
        EXPECT_EQ(std::signbit(number), code >= 128) << code;
      }
      if (std::isfinite(due)) {
        EXPECT_EQ(ToFloat8(format.format, number), code);
      }
    }
    EXPECT_EQ(NumberOf(format, FiniteCodes(format).back()), format.largest);
  }
}

TEST(Float8, RoundsToTheNearestAndOfTwoAsNearToTheEvenCode) {
  TestRandom random;
  for (const Format& format : kFormats) {
    const std::vector<int> codes = FiniteCodes(format);
    std::vector<float> numbers;
    for (size_t i = 0; i + 1 < codes.size(); ++i) {
      const auto middle =
          static_cast<float>((NumberOf(format, codes[i]) + NumberOf(format, codes[i + 1])) / 2);
      for (const float number :
           {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, INFINITY)}) {
        numbers.push_back(number);
      }
    }
    for (int i = 0; i < 20000; ++i) {
      numbers.push_back(static_cast<float>(
          random.Normal() * std::exp2(static_cast<double>(random.Integer(-24, 17)))));
    }
    for (const float number : numbers) {
      const double magnitude = std::min<double>(std::abs(number), format.largest);
      int nearest = codes[0];
      for (const int code : codes) {
        const double distance = std::abs(NumberOf(format, code) - magnitude);
        const double best = std::abs(NumberOf(format, nearest) - magnitude);
        if (distance < best || (distance == best && code % 2 == 0)) nearest = code;
      }
      EXPECT_EQ(ToFloat8(format.format, number), nearest + (std::signbit(number) ? 128 : 0))
          << number;
    }
  }
}

TEST(Float8, SaturatesAndKeepsWhatIsNoNumberNoNumber) {
  for (const Format& format : kFormats) {
    const auto back = [&](float value) {
      return FromFloat8(format.format, ToFloat8(format.format, value));
    };
    EXPECT_EQ(back(1e30f), format.largest);
    EXPECT_EQ(back(-1e30f), -format.largest);
    EXPECT_EQ(back(std::numeric_limits<float>::denorm_min()), 0.0f);
    for (const float value : {NAN, INFINITY, -INFINITY}) {
      EXPECT_TRUE(std::isnan(back(value)));
      EXPECT_TRUE(std::isnan(FromFloat8(format.format, Quantized(format.format, value, 0.5f))));
    }
    // The quotient overflows float32.
    EXPECT_EQ(FromFloat8(format.format, Quantized(format.format, -1e30f, 0x1p100f)),
              -format.largest);
  }
}

TEST(Float8, AScaleIsTheLeastPowerOfTwoThatBringsTheLargestWithinTheFormat) {
  TestRandom random;
  for (const Format& format : kFormats) {
    std::vector<float> amaxes = {static_cast<float>(format.largest),
                                 std::nextafter(static_cast<float>(format.largest), 1e9f),
                                 1.0f,
                                 1.75f,
                                 1.76f,
                                 std::numeric_limits<float>::max()};
    for (int i = 0; i < 2000; ++i) {
      amaxes.push_back(static_cast<float>(std::abs(random.Normal()) *
                                          std::exp2(static_cast<double>(random.Integer(-60, 80)))) +
                       1e-22f);
    }
    for (const float amax : amaxes) {
      const double scale = ScaleOf(format.format, amax);
      EXPECT_EQ(std::exp2(std::round(std::log2(scale))), scale);
      EXPECT_LE(amax / scale, format.largest) << amax;
      EXPECT_GT(2 * amax / scale, format.largest) << amax;
    }
    EXPECT_EQ(ScaleOf(format.format, 0x1p-140f), 0x1p-100f);
    for (const float none : {0.0f, NAN, INFINITY}) EXPECT_EQ(ScaleOf(format.format, none), 1.0f);
  }
}

TEST(Float8, MagnitudesAreComparedAndNaNIsTheLargest) {
  EXPECT_EQ(LargerMagnitude(-3.0f, 2.0f), 3.0f);
  EXPECT_EQ(LargerMagnitude(1.0f, -INFINITY), INFINITY);
  EXPECT_TRUE(std::isnan(LargerMagnitude(NAN, INFINITY)));
  EXPECT_TRUE(std::isnan(LargerMagnitude(1.0f, -NAN)));
}

TEST(Float8, ValuesOfBothFormatsAreEncodedAsTheirCodes) {
  for (const Format& format : kFormats) {
    const auto dtype = format.format == Float8Format::kE4M3 ? model::DType::kFloat8E4M3
                                                            : model::DType::kFloat8E5M2;
    EXPECT_EQ(model::SizeOf(dtype), 1);
    const std::vector<double> numbers = {0, 1, -2.5, 0.3, 1e9};
    std::vector<std::byte> bytes(numbers.size());
    Encode(dtype, numbers.data(), static_cast<int64_t>(numbers.size()), bytes.data());
    std::vector<double> back(numbers.size());
    Decode(dtype, bytes.data(), static_cast<int64_t>(numbers.size()), back.data());
    EXPECT_EQ(back[1], 1);
    EXPECT_EQ(back[2], -2.5);
    EXPECT_EQ(back[3], 0.3125);
    EXPECT_EQ(back[4], format.largest);
  }
}

}  // namespace
}  // namespace troupe::kernels
