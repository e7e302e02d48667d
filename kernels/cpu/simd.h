// Vectors of kLanes float32 at the level being compiled, as GCC vector extensions: + - * / and
// comparisons work directly. Included by level_target.h only.
#ifndef TROUPE_KERNELS_CPU_SIMD_H_
#define TROUPE_KERNELS_CPU_SIMD_H_

namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE {

#if TROUPE_LEVEL >= 2
inline constexpr int kLanes = 16;
#elif TROUPE_LEVEL == 1
inline constexpr int kLanes = 8;
#else
inline constexpr int kLanes = 4;
#endif

typedef float F32 __attribute__((vector_size(kLanes * 4), may_alias));
typedef int32_t I32 __attribute__((vector_size(kLanes * 4), may_alias));
typedef uint32_t U32 __attribute__((vector_size(kLanes * 4), may_alias));
typedef uint16_t U16 __attribute__((vector_size(kLanes * 2), may_alias));
typedef float F32Unaligned __attribute__((vector_size(kLanes * 4), may_alias, aligned(4)));
typedef uint32_t U32Unaligned __attribute__((vector_size(kLanes * 4), may_alias, aligned(4)));
typedef uint16_t U16Unaligned __attribute__((vector_size(kLanes * 2), may_alias, aligned(2)));
typedef double F64 __attribute__((vector_size(kLanes * 4), may_alias));  // kLanes / 2 lanes

#define TROUPE_INLINE inline __attribute__((always_inline))

TROUPE_INLINE F32 Set(float value) { return value - F32{}; }

TROUPE_INLINE F32 Load(const float* p) { return *reinterpret_cast<const F32Unaligned*>(p); }
TROUPE_INLINE void Store(float* p, F32 v) { *reinterpret_cast<F32Unaligned*>(p) = v; }

TROUPE_INLINE F32 Load(const BFloat16* p) {
  const U16 bits = *reinterpret_cast<const U16Unaligned*>(p);
  return reinterpret_cast<F32>(__builtin_convertvector(bits, U32) << 16);
}

// Rounds each lane to nearest even; the result is in the lane's low 16 bits.
TROUPE_INLINE U32 RoundToBFloat16(F32 v) {
  const U32 bits = reinterpret_cast<U32>(v);
  const U32 rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  const U32 quiet = (bits >> 16) | 0x40u;
  const U32 is_nan = reinterpret_cast<U32>(v != v);
  return (is_nan & quiet) | (~is_nan & rounded);
}

TROUPE_INLINE void Store(BFloat16* p, F32 v) {
#if TROUPE_LEVEL == 3
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), (__m256i)_mm512_cvtneps_pbh((__m512)v));
#elif TROUPE_LEVEL == 2
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtepi32_epi16((__m512i)RoundToBFloat16(v)));
#elif TROUPE_LEVEL == 1
  const __m256i words = (__m256i)RoundToBFloat16(v);
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(words, words), 0x08);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(packed));
#else
  const U32 words = RoundToBFloat16(v);
  for (int i = 0; i < kLanes; ++i) p[i].bits = static_cast<uint16_t>(words[i]);
#endif
}

// Loads the first `count` < kLanes elements; the other lanes are `fill`.
template <typename T>
TROUPE_INLINE F32 LoadPartial(const T* p, int64_t count, T fill = {}) {
  T buffer[kLanes];
  for (int i = 0; i < kLanes; ++i) buffer[i] = i < count ? p[i] : fill;
  return Load(buffer);
}
template <typename T>
TROUPE_INLINE void StorePartial(T* p, int64_t count, F32 v) {
  T buffer[kLanes];
  Store(buffer, v);
  for (int64_t i = 0; i < count; ++i) p[i] = buffer[i];
}

// Loads the first min(count, kLanes) elements.
template <typename T>
TROUPE_INLINE F32 LoadUpTo(const T* p, int64_t count) {
  return count >= kLanes ? Load(p) : LoadPartial(p, count);
}
template <typename T>
TROUPE_INLINE void StoreUpTo(T* p, int64_t count, F32 v) {
  if (count >= kLanes) {
    Store(p, v);
  } else {
    StorePartial(p, count, v);
  }
}

TROUPE_INLINE F32 Max(F32 a, F32 b) { return a > b ? a : b; }

// Reduce all lanes, always by halves.
TROUPE_INLINE float ReduceAdd(F32 v) {
#if TROUPE_LEVEL >= 2
  return _mm512_reduce_add_ps((__m512)v);
#else
  float lanes[kLanes];
  Store(lanes, v);
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
#endif
}
TROUPE_INLINE float ReduceMax(F32 v) {
#if TROUPE_LEVEL >= 2
  return _mm512_reduce_max_ps((__m512)v);
#else
  float largest = v[0];
  for (int i = 1; i < kLanes; ++i) largest = v[i] > largest ? v[i] : largest;
  return largest;
#endif
}

TROUPE_INLINE F32 Sqrt(F32 v) {
#if TROUPE_LEVEL >= 2
  return (F32)_mm512_sqrt_ps((__m512)v);
#elif TROUPE_LEVEL == 1
  return (F32)_mm256_sqrt_ps((__m256)v);
#else
  return (F32)_mm_sqrt_ps((__m128)v);
#endif
}

// Lanes 0, 1, 2, …
TROUPE_INLINE I32 Iota() {
  I32 lanes;
  for (int i = 0; i < kLanes; ++i) lanes[i] = i;
  return lanes;
}

// e^x within 2 units in the last place: 0 below -87.3 (no denormals), saturated above 88.3, NaN for
// NaN. Range reduction by ln 2 in two parts and a polynomial of degree 6 (Cephes' expf).
TROUPE_INLINE F32 Exp(F32 x) {
  const F32 lowest = Set(-87.33654f);
  const F32 highest = Set(88.3f);
  const F32 magic = Set(12582912.0f);  // 1.5 · 2^23: adding it rounds to an integer in the low bits
  const F32 clamped = x > highest ? highest : x;
  const F32 shifted = clamped * 1.44269504088896341f + magic;
  // Unsigned, because it wraps far below `lowest`, where the result is discarded.
  const U32 exponent = reinterpret_cast<U32>(shifted) - reinterpret_cast<U32>(magic);
  const F32 n = shifted - magic;
  F32 r = clamped - n * 0.693359375f;
  r = r - n * -2.12194440e-4f;
  F32 p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  const F32 scaled = reinterpret_cast<F32>(reinterpret_cast<U32>(p) + (exponent << 23));
  const F32 flushed = x < lowest ? F32{} : scaled;
  return x != x ? x : flushed;
}

// The items [begin, end) of part `thread` of `threads`, out of `count` items in units of `unit`.
struct Part {
  int64_t begin, end;
};
TROUPE_INLINE Part PartOf(int64_t count, int thread, int threads, int64_t unit = 1) {
  const int64_t units = (count + unit - 1) / unit;
  const int64_t begin = units * thread / threads * unit;
  const int64_t end = units * (thread + 1) / threads * unit;
  return {begin < count ? begin : count, end < count ? end : count};
}

}  // namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE

#endif  // TROUPE_KERNELS_CPU_SIMD_H_
