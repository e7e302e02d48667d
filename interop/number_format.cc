#include "interop/number_format.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>

#include "base/check.h"

namespace troupe {
namespace {

struct FormatInfo {
  NumberFormat format;
  std::string_view dtype, name;
  int64_t bytes;
};

constexpr FormatInfo kFormats[] = {{NumberFormat::kFloat32, "F32", "float32", 4},
                                   {NumberFormat::kBFloat16, "BF16", "bfloat16", 2},
                                   {NumberFormat::kFloat16, "F16", "float16", 2}};

const FormatInfo& InfoOf(NumberFormat format) {
  return *std::ranges::find(kFormats, format, &FormatInfo::format);
}

// Lists `member` of every format: "F32, BF16, F16" for dtypes and ", ".
std::string ListOf(std::string_view FormatInfo::*member, std::string_view last_separator) {
  std::string list;
  for (const FormatInfo& info : kFormats) {
    const bool is_last = &info + 1 == std::end(kFormats);
    if (!list.empty()) list += is_last ? last_separator : ", ";
    list += info.*member;
  }
  return list;
}

constexpr uint32_t kInfinity = 0x7F800000;  // larger values, without the sign, are NaNs

float FromBFloat16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

uint16_t ToBFloat16(float number) {
  const uint32_t bits = std::bit_cast<uint32_t>(number);
  if ((bits & 0x7FFFFFFF) > kInfinity) {
    // Rounding could carry a NaN to infinity, so a NaN is truncated; one with its payload only in
    // the lost bits gets a payload bit.
    const uint16_t high = static_cast<uint16_t>(bits >> 16);
    return (high & 0x7F) != 0 ? high : static_cast<uint16_t>(high | 0x40);
  }
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

float FromFloat16(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t exponent = (bits >> 10) & 0x1F, mantissa = bits & 0x3FF;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | kInfinity | mantissa << 13);
  if (exponent != 0) {
    return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  }
  if (mantissa == 0) return std::bit_cast<float>(sign);
  // A subnormal: its leading bit becomes the implicit one.
  const int shift = std::countl_zero(mantissa) - 21;
  return std::bit_cast<float>(sign | static_cast<uint32_t>(113 - shift) << 23 |
                              ((mantissa << shift) & 0x3FF) << 13);
}

// Shifts `bits` right by `shift` in 1..31 and rounds to nearest, ties to even.
uint32_t RoundingShift(uint32_t bits, int shift) {
  const uint32_t half = uint32_t{1} << (shift - 1);
  return (bits + half - 1 + ((bits >> shift) & 1)) >> shift;
}

uint16_t ToFloat16(float number) {
  const uint32_t bits = std::bit_cast<uint32_t>(number);
  const uint32_t sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7FFFFFFF;
  if (magnitude > kInfinity) {
    const uint32_t payload = (magnitude >> 13) & 0x3FF;
    return static_cast<uint16_t>(sign | 0x7C00 | (payload != 0 ? payload : 0x200));
  }
  const uint32_t exponent = magnitude >> 23;
  if (exponent >= 143) return static_cast<uint16_t>(sign | 0x7C00);  // 2^16 and above
  // A carry out of the mantissa correctly increases the exponent, up to infinity.
  if (exponent >= 113) {
    return static_cast<uint16_t>(sign | RoundingShift(magnitude - (uint32_t{112} << 23), 13));
  }
  if (exponent < 102) return static_cast<uint16_t>(sign);  // below half of the smallest subnormal
  const uint32_t mantissa = (magnitude & 0x7FFFFF) | 0x800000;
  return static_cast<uint16_t>(sign | RoundingShift(mantissa, static_cast<int>(126 - exponent)));
}

template <typename Convert>
void Widen(std::span<const std::byte> bytes, std::span<float> numbers, Convert convert) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    uint16_t bits;
    std::memcpy(&bits, bytes.data() + 2 * i, 2);
    numbers[i] = convert(bits);
  }
}

template <typename Convert>
int64_t Narrow(std::span<const float> numbers, std::span<std::byte> bytes, uint16_t infinity,
               Convert convert) {
  int64_t overflows = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const uint16_t bits = convert(numbers[i]);
    std::memcpy(bytes.data() + 2 * i, &bits, 2);
    overflows += (bits & 0x7FFF) == infinity &&
                 (std::bit_cast<uint32_t>(numbers[i]) & 0x7FFFFFFF) < kInfinity;
  }
  return overflows;
}

}  // namespace

StatusOr<NumberFormat> FormatOfDtype(std::string_view dtype) {
  for (const FormatInfo& info : kFormats) {
    if (info.dtype == dtype) return info.format;
  }
  return InvalidArgument("dtype {} is not one of {}", dtype, ListOf(&FormatInfo::dtype, ", "));
}

StatusOr<NumberFormat> FormatOfName(std::string_view name) {
  for (const FormatInfo& info : kFormats) {
    if (info.name == name) return info.format;
  }
  return InvalidArgument("dtype \"{}\" is not one of {}", name.substr(0, 64), FormatNames(", "));
}

std::string_view DtypeOf(NumberFormat format) { return InfoOf(format).dtype; }
std::string_view NameOf(NumberFormat format) { return InfoOf(format).name; }
std::string FormatNames(std::string_view last_separator) {
  return ListOf(&FormatInfo::name, last_separator);
}
int64_t BytesOf(NumberFormat format) { return InfoOf(format).bytes; }

void ToFloat32(NumberFormat format, std::span<const std::byte> bytes, std::span<float> numbers) {
  TROUPE_CHECK(static_cast<int64_t>(bytes.size()) ==
               static_cast<int64_t>(numbers.size()) * BytesOf(format));
  switch (format) {
    case NumberFormat::kFloat32:
      if (!bytes.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
      return;
    case NumberFormat::kBFloat16:
      return Widen(bytes, numbers, FromBFloat16);
    case NumberFormat::kFloat16:
      return Widen(bytes, numbers, FromFloat16);
  }
}

int64_t FromFloat32(NumberFormat format, std::span<const float> numbers,
                    std::span<std::byte> bytes) {
  TROUPE_CHECK(static_cast<int64_t>(bytes.size()) ==
               static_cast<int64_t>(numbers.size()) * BytesOf(format));
  switch (format) {
    case NumberFormat::kFloat32:
      if (!bytes.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
      return 0;
    case NumberFormat::kBFloat16:
      return Narrow(numbers, bytes, 0x7F80, ToBFloat16);
    case NumberFormat::kFloat16:
      return Narrow(numbers, bytes, 0x7C00, ToFloat16);
  }
  return 0;
}

}  // namespace troupe
