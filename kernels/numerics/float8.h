// The two 8-bit formats (OCP 8-bit Floating Point Specification OFP8, revision 1.0, 2023) and the
// scales of quantised tensors. Host and device code give the same bits.
//
//                                      E4M3                     E5M2
//   bits: sign, exponent, mantissa     1, 4, 3                  1, 5, 2
//   bias                               7                        15
//   largest                            448 = 1.75·2^8           57344 = 1.75·2^15
//   smallest normal, step below it     2^-6, 2^-9               2^-14, 2^-16
//   not numbers                        NaN: all but sign set    infinity, and NaN above it
#ifndef TROUPE_KERNELS_NUMERICS_FLOAT8_H_
#define TROUPE_KERNELS_NUMERICS_FLOAT8_H_

#include <bit>
#include <cstdint>

#include "kernels/numerics/anywhere.h"

namespace troupe::kernels {

enum class Float8Format : uint8_t { kE4M3, kE5M2 };

struct Float8Layout {
  int mantissa_bits, bias, largest_exponent;
  uint32_t largest;  // float32 bits of the largest number
  uint8_t not_a_number;
};
TROUPE_ANYWHERE constexpr Float8Layout LayoutOf(Float8Format format) {
  return format == Float8Format::kE4M3 ? Float8Layout{3, 7, 8, 0x43E00000u, 0x7F}
                                       : Float8Layout{2, 15, 15, 0x47600000u, 0x7E};
}

TROUPE_ANYWHERE constexpr bool IsFiniteNumber(float value) {
  return (std::bit_cast<uint32_t>(value) & 0x7FFFFFFFu) < 0x7F800000u;
}

// Rounds to the nearest number of the format, ties to even, and saturates at the largest. NaN and
// infinity become NaN, because E4M3 has no infinity.
TROUPE_ANYWHERE constexpr uint8_t ToFloat8(Float8Format format, float value) {
  const Float8Layout layout = LayoutOf(format);
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 24 & 0x80u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  const int dropped = 23 - layout.mantissa_bits;
  const uint32_t clamped = magnitude < layout.largest ? magnitude : layout.largest;
  // Branch-free, so that loops are vectorised. For magnitudes below the smallest normal number,
  // adding `steps` rounds to whole steps; the low bits of the sum then count them.
  const uint32_t smallest_normal = static_cast<uint32_t>(128 - layout.bias) << 23;
  const uint32_t steps = static_cast<uint32_t>(128 - layout.bias + dropped) << 23;
  const float sum = std::bit_cast<float>(clamped) + std::bit_cast<float>(steps);
  const uint32_t counted = std::bit_cast<uint32_t>(sum) - steps;
  const uint32_t rebiased = clamped - (static_cast<uint32_t>(127 - layout.bias) << 23);
  const uint32_t rounded =
      (rebiased + ((1u << (dropped - 1)) - 1) + (rebiased >> dropped & 1u)) >> dropped;
  const uint32_t number = clamped < smallest_normal ? counted : rounded;
  const uint32_t code = magnitude < 0x7F800000u ? number : layout.not_a_number;
  return static_cast<uint8_t>(sign | code);
}

// The number that the 8-bit `code` represents.
TROUPE_ANYWHERE constexpr float FromFloat8(Float8Format format, uint8_t code) {
  const Float8Layout layout = LayoutOf(format);
  const uint32_t sign = static_cast<uint32_t>(code & 0x80u) << 24;
  const uint32_t magnitude = code & 0x7Fu;
  const uint32_t exponent = magnitude >> layout.mantissa_bits;
  if (format == Float8Format::kE5M2 && exponent == 31) {
    return std::bit_cast<float>(sign | (magnitude == 0x7Cu ? 0x7F800000u : 0x7FC00000u));
  }
  if (format == Float8Format::kE4M3 && magnitude == 0x7Fu)
    return std::bit_cast<float>(sign | 0x7FC00000u);
  if (exponent == 0) {
    const float step =
        std::bit_cast<float>(static_cast<uint32_t>(128 - layout.bias - layout.mantissa_bits) << 23);
    const float number = static_cast<float>(magnitude) * step;
    return sign != 0 ? -number : number;
  }
  return std::bit_cast<float>(sign | ((magnitude << (23 - layout.mantissa_bits)) +
                                      (static_cast<uint32_t>(127 - layout.bias) << 23)));
}

// The smallest power of two that scales magnitudes up to `amax` into the format's range; 1 if amax
// is 0 or not finite. Scaling by a power of two is exact, so that quantised and dequantised numbers
// have the same mantissa and matmuls need no second rounding. A scale is at least 2^-100, so that
// dequantised numbers are exact in bfloat16.
TROUPE_ANYWHERE constexpr float ScaleOf(Float8Format format, float amax) {
  const uint32_t bits = std::bit_cast<uint32_t>(amax) & 0x7FFFFFFFu;
  if (bits == 0 || bits >= 0x7F800000u) return 1.0f;
  const Float8Layout layout = LayoutOf(format);
  const bool carries = (bits & 0x7FFFFFu) > (layout.largest & 0x7FFFFFu);
  const int exponent =
      static_cast<int>(bits >> 23) - 127 - layout.largest_exponent + (carries ? 1 : 0);
  return std::bit_cast<float>(static_cast<uint32_t>((exponent < -100 ? -100 : exponent) + 127)
                              << 23);
}

// The scale for delayed scaling, where `amax` comes from earlier steps: magnitudes up to twice as
// large still fit. This costs no mantissa bits, only one binade of the smallest numbers.
TROUPE_ANYWHERE constexpr float DelayedScaleOf(Float8Format format, float amax) {
  return 2.0f * ScaleOf(format, amax);
}

// Quantises `value` with the inverse of its scale. A finite value never becomes NaN, even if the
// quotient overflows.
TROUPE_ANYWHERE constexpr uint8_t Quantized(Float8Format format, float value, float inverse_scale) {
  const float largest = std::bit_cast<float>(LayoutOf(format).largest);
  const float quotient = value * inverse_scale;
  const float within = quotient > largest ? largest : quotient < -largest ? -largest : quotient;
  return ToFloat8(format, IsFiniteNumber(value) ? within : value);
}

// The larger of two magnitudes; NaN counts as larger than any number.
TROUPE_ANYWHERE constexpr float LargerMagnitude(float a, float b) {
  const uint32_t x = std::bit_cast<uint32_t>(a) & 0x7FFFFFFFu,
                 y = std::bit_cast<uint32_t>(b) & 0x7FFFFFFFu;
  return std::bit_cast<float>(x > y ? x : y);
}

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_NUMERICS_FLOAT8_H_
