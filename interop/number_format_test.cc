#include "interop/number_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "troupe/v1/job.pb.h"

namespace troupe {
namespace {

float Widened(NumberFormat format, uint16_t bits) {
  float number = 0;
  ToFloat32(format, std::as_bytes(std::span(&bits, 1)), {&number, 1});
  return number;
}

uint16_t Narrowed(NumberFormat format, float number, int64_t* overflows = nullptr) {
  uint16_t bits = 0;
  const int64_t count =
      FromFloat32(format, {&number, 1}, std::as_writable_bytes(std::span(&bits, 1)));
  if (overflows != nullptr) *overflows = count;
  return bits;
}

TEST(NumberFormatTest, EveryBitPatternOfSixteenBitsComesBack) {
  for (const NumberFormat format : {NumberFormat::kBFloat16, NumberFormat::kFloat16}) {
    for (int bits = 0; bits < 1 << 16; ++bits) {
      const uint16_t pattern = static_cast<uint16_t>(bits);
      ASSERT_EQ(Narrowed(format, Widened(format, pattern)), pattern) << NameOf(format);
    }
  }
}

TEST(NumberFormatTest, Float16IsWhatItsFieldsState) {
  for (int bits = 0; bits < 0x7C00; ++bits) {
    const int exponent = bits >> 10, mantissa = bits & 0x3FF;
    const double expected =
        exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
    ASSERT_EQ(Widened(NumberFormat::kFloat16, static_cast<uint16_t>(bits)), expected);
    ASSERT_EQ(Widened(NumberFormat::kFloat16, static_cast<uint16_t>(bits | 0x8000)), -expected);
  }
}

// Between two neighbours the nearer one is chosen, and in the middle the even one.
TEST(NumberFormatTest, RoundsToNearestTiesToEven) {
  for (const auto& [format, end] :
       {std::pair(NumberFormat::kBFloat16, 0x7F7F), std::pair(NumberFormat::kFloat16, 0x7BFF)}) {
    for (int bits = 0; bits < end; bits += 7) {
      const uint16_t low = static_cast<uint16_t>(bits), high = static_cast<uint16_t>(bits + 1);
      const double a = Widened(format, low), b = Widened(format, high);
      const float middle = static_cast<float>((a + b) / 2);
      if (static_cast<double>(middle) == (a + b) / 2) {
        ASSERT_EQ(Narrowed(format, middle), bits % 2 == 0 ? low : high) << bits;
      }
      ASSERT_EQ(Narrowed(format, static_cast<float>(a + (b - a) * 0.25)), low) << bits;
      ASSERT_EQ(Narrowed(format, static_cast<float>(a + (b - a) * 0.75)), high) << bits;
    }
  }
}

TEST(NumberFormatTest, CountsWhatBecomesInfinite) {
  int64_t overflows = 0;
  EXPECT_EQ(Narrowed(NumberFormat::kFloat16, 65519.0f, &overflows), 0x7BFF);
  EXPECT_EQ(overflows, 0);
  EXPECT_EQ(Narrowed(NumberFormat::kFloat16, 65520.0f, &overflows), 0x7C00);
  EXPECT_EQ(overflows, 1);
  EXPECT_EQ(Narrowed(NumberFormat::kFloat16, -1e30f, &overflows), 0xFC00);
  EXPECT_EQ(overflows, 1);
  EXPECT_EQ(Narrowed(NumberFormat::kFloat16, std::numeric_limits<float>::infinity(), &overflows),
            0x7C00);
  EXPECT_EQ(overflows, 0);
  EXPECT_EQ(Narrowed(NumberFormat::kBFloat16, std::numeric_limits<float>::max(), &overflows),
            0x7F80);
  EXPECT_EQ(overflows, 1);
}

TEST(NumberFormatTest, NaNStaysNaN) {
  // The payload is in bits that both formats lack.
  const float nan = std::bit_cast<float>(0x7F800001u);
  EXPECT_TRUE(std::isnan(Widened(NumberFormat::kBFloat16, Narrowed(NumberFormat::kBFloat16, nan))));
  EXPECT_TRUE(std::isnan(Widened(NumberFormat::kFloat16, Narrowed(NumberFormat::kFloat16, nan))));
}

TEST(NumberFormatTest, UnknownNamesAreRefused) {
  EXPECT_EQ(FormatOfDtype("F64").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(FormatOfName("float8").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(*FormatOfName("bfloat16"), *FormatOfDtype("BF16"));
  EXPECT_EQ(Message(FormatOfDtype("F64").status()), "dtype F64 is not one of F32, BF16, F16");
  EXPECT_EQ(Message(FormatOfName("float8").status()),
            "dtype \"float8\" is not one of float32, bfloat16, float16");
}

TEST(NumberFormatTest, EveryFormatHasItsNameAndItsBytes) {
  for (const auto& [format, name, bytes] : {std::tuple(NumberFormat::kFloat32, "float32", 4),
                                            std::tuple(NumberFormat::kBFloat16, "bfloat16", 2),
                                            std::tuple(NumberFormat::kFloat16, "float16", 2)}) {
    EXPECT_EQ(NameOf(format), name);
    EXPECT_EQ(BytesOf(format), bytes) << name;
  }
  EXPECT_EQ(FormatNames(" or "), "float32, bfloat16 or float16");
}

TEST(NumberFormatTest, NamesAreTheWordsOfTheKeyExportDtype) {
  const google::protobuf::EnumDescriptor& type = *v1::ExportDtype_descriptor();
  constexpr std::string_view kPrefix = "EXPORT_DTYPE_";
  std::string words;
  for (int i = 0; i < type.value_count(); ++i) {
    std::string word(type.value(i)->name().substr(kPrefix.size()));
    std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
    words += (words.empty() ? "" : ", ") + word;
  }
  EXPECT_EQ(FormatNames(", "), words);
}

}  // namespace
}  // namespace troupe
