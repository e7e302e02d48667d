// Elements of the compute dtype in kernels: float32 in registers, bfloat16 or float32 in memory,
// accessed sixteen bytes at a time.
#ifndef TROUPE_KERNELS_CUDA_DEVICE_CODE_NUMBERS_H_
#define TROUPE_KERNELS_CUDA_DEVICE_CODE_NUMBERS_H_

#include <cmath>
#include <cstdint>

#include "kernels/cuda/device_code/simt.h"
#include "kernels/numerics/bfloat16.h"

namespace troupe::kernels::cuda {

TROUPE_DEVICE float Widen(float value) { return value; }
TROUPE_DEVICE float Widen(BFloat16 value) {
#ifdef __CUDA_ARCH__
  return __uint_as_float(uint32_t{value.bits} << 16);
#else
  return ToFloat(value);
#endif
}

template <typename T>
TROUPE_DEVICE T Narrow(float value);
template <>
TROUPE_DEVICE float Narrow<float>(float value) {
  return value;
}
template <>
TROUPE_DEVICE BFloat16 Narrow<BFloat16>(float value) {
#ifdef __CUDA_ARCH__
  return {__bfloat16_as_ushort(__float2bfloat16_rn(value))};
#else
  return ToBFloat16(value);
#endif
}

// 2^x: accurate to one or two units in the last place for float32; for results that become
// bfloat16, the hardware's approximation.
template <typename T>
TROUPE_DEVICE float Exp2(float x) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(T) == 2) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
  }
#endif
  return exp2f(x);
}

inline constexpr float kLog2E = 1.44269504088896340736f, kLn2 = 0.69314718055994530942f;

// e^x and 1 / x, with the same accuracies.
template <typename T>
TROUPE_DEVICE float Exp(float x) {
  if constexpr (sizeof(T) == 2) return Exp2<T>(x * kLog2E);
  return expf(x);
}
template <typename T>
TROUPE_DEVICE float Reciprocal(float x) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(T) == 2) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
  }
#endif
  return 1.0f / x;
}

// N adjacent elements, in one memory access. If N > 1, REQUIRES: the address is a multiple of their
// size.
template <typename T, int N>
struct alignas(N * sizeof(T)) Pack {
  T values[N];

  TROUPE_DEVICE static Pack Load(const T* from) {
    RequireAligned(from, alignof(Pack));
    return *reinterpret_cast<const Pack*>(from);
  }
  TROUPE_DEVICE void Store(T* to) const {
    RequireAligned(to, alignof(Pack));
    *reinterpret_cast<Pack*>(to) = *this;
  }
  TROUPE_DEVICE float operator[](int i) const { return Widen(values[i]); }
  TROUPE_DEVICE void Set(int i, float value) { values[i] = Narrow<T>(value); }
};

// Number of elements in a sixteen-byte access.
template <typename T>
inline constexpr int kPack = 16 / sizeof(T);

// The sum over a warp, for float or double; every lane gets the result.
template <typename T>
TROUPE_DEVICE T WarpSum(T value) {
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) value += ShuffleXor(value, lanes);
  return value;
}
TROUPE_DEVICE float WarpMax(float value) {
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) {
    value = fmaxf(value, ShuffleXor(value, lanes));
  }
  return value;
}

// The sum over all threads of a block of whole warps; every thread gets the result, with the same
// bits in every run. `shared`: f[33], not otherwise used until the block's second barrier from now.
TROUPE_DEVICE float BlockSum(float value, float* shared) {
  value = WarpSum(value);
  if (Lane() == 0) shared[Warp()] = value;
  SyncBlock();
  if (Warp() == 0) {
    const int warps = static_cast<int>(BlockThreads()) / kWarp;
    const float sum = WarpSum(Lane() < warps ? shared[Lane()] : 0.0f);
    if (Lane() == 0) shared[kWarp] = sum;
  }
  SyncBlock();
  return shared[kWarp];
}

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_DEVICE_CODE_NUMBERS_H_
