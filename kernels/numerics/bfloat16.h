// bfloat16 as kernels store it: the upper half of a float32, rounded to nearest even.
#ifndef TROUPE_KERNELS_NUMERICS_BFLOAT16_H_
#define TROUPE_KERNELS_NUMERICS_BFLOAT16_H_

#include <bit>
#include <cstdint>

namespace troupe::kernels {

struct BFloat16 {
  uint16_t bits;
};
static_assert(sizeof(BFloat16) == 2);

inline float ToFloat(BFloat16 value) { return std::bit_cast<float>(uint32_t{value.bits} << 16); }

// Rounds to nearest even; a NaN remains a NaN.
inline BFloat16 ToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return {static_cast<uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16)};
}

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_NUMERICS_BFLOAT16_H_
