#include "collective/reduction.h"

#include <bit>
#include <cstdint>
#include <limits>

namespace troupe {
namespace {

template <typename T>
void Sum(const void*, void* accumulator, const void* other, size_t count) {
  T* __restrict a = static_cast<T*>(accumulator);
  const T* __restrict b = static_cast<const T*>(other);
  for (size_t i = 0; i < count; ++i) a[i] += b[i];
}

inline float ToFloat(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

// Rounds to nearest even. A NaN keeps its sign and becomes quiet; plain rounding could carry it
// into infinity.
inline uint16_t ToBfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t quiet = (bits >> 16) | 0x40u;
  const bool is_nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
  return static_cast<uint16_t>(is_nan ? quiet : rounded);
}

void SumBfloat16Values(const void*, void* accumulator, const void* other, size_t count) {
  uint16_t* __restrict a = static_cast<uint16_t*>(accumulator);
  const uint16_t* __restrict b = static_cast<const uint16_t*>(other);
  for (size_t i = 0; i < count; ++i) a[i] = ToBfloat16(ToFloat(a[i]) + ToFloat(b[i]));
}

void SumPackedValues(const void*, void* accumulator, const void* other, size_t count) {
  float* __restrict a = static_cast<float*>(accumulator);
  const uint16_t* __restrict b = static_cast<const uint16_t*>(other);
  for (size_t i = 0; i < count; ++i) a[i] += ToFloat(b[i]);
}

void PackFloat32(const void* from, void* to, size_t count) {
  const float* __restrict a = static_cast<const float*>(from);
  uint16_t* __restrict b = static_cast<uint16_t*>(to);
  for (size_t i = 0; i < count; ++i) b[i] = ToBfloat16(a[i]);
}

void UnpackFloat32(const void* from, void* to, size_t count) {
  const uint16_t* __restrict a = static_cast<const uint16_t*>(from);
  float* __restrict b = static_cast<float*>(to);
  for (size_t i = 0; i < count; ++i) b[i] = ToFloat(a[i]);
}

void MaxFloat32Values(const void*, void* accumulator, const void* other, size_t count) {
  uint32_t* __restrict a = static_cast<uint32_t*>(accumulator);
  const uint32_t* __restrict b = static_cast<const uint32_t*>(other);
  constexpr uint32_t kQuietNan = 0x7FC00000u;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t x = a[i];
    const uint32_t y = b[i];
    // This map makes the order of unsigned integers that of floats, with -0 just below +0.
    const uint32_t x_order = x ^ ((x >> 31) ? 0xFFFFFFFFu : 0x80000000u);
    const uint32_t y_order = y ^ ((y >> 31) ? 0xFFFFFFFFu : 0x80000000u);
    const uint32_t larger = x_order > y_order ? x : y;
    const bool is_nan = (x & 0x7FFFFFFFu) > 0x7F800000u || (y & 0x7FFFFFFFu) > 0x7F800000u;
    a[i] = is_nan ? kQuietNan : larger;
  }
}

}  // namespace

Reduction SumFloat32() { return {&Sum<float>, nullptr, sizeof(float), "sum_float32"}; }
Reduction SumFloat64() { return {&Sum<double>, nullptr, sizeof(double), "sum_float64"}; }
Reduction SumBfloat16() { return {&SumBfloat16Values, nullptr, sizeof(uint16_t), "sum_bfloat16"}; }
Reduction SumFloat32AsBfloat16() {
  return {&SumPackedValues, nullptr,      sizeof(float), "sum_float32_as_bfloat16",
          sizeof(uint16_t), &PackFloat32, &UnpackFloat32};
}
Reduction MaxFloat32() { return {&MaxFloat32Values, nullptr, sizeof(float), "max_float32"}; }

}  // namespace troupe
