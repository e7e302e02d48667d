// Dropout with the draws of kernels/numerics/dropout_draw.h: Philox4x32-10 on vectors of counters
// that differ only in the group of channels. Bound by the multiplications, about three instructions
// per element.
#include "kernels/cpu/level_target.h"

namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE {

typedef uint64_t U64 __attribute__((vector_size(kLanes * 4), may_alias));  // kLanes / 2 lanes

// Multiplies the low halves.
TROUPE_INLINE U64 MultiplyLow32(U64 a, U64 b) {
#if TROUPE_LEVEL >= 2
  return (U64)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif TROUPE_LEVEL == 1
  return (U64)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#else
  return (U64)_mm_mul_epu32((__m128i)a, (__m128i)b);
#endif
}

// The four words of kLanes / 2 counters, in the low halves of 64-bit lanes; the high halves are
// unspecified.
struct Counters {
  U64 c0, c1, c2, c3;
};

TROUPE_INLINE void Mix(Counters* counters, uint64_t key) {
  auto key0 = static_cast<uint32_t>(key), key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const U64 product0 = MultiplyLow32(counters->c0, U64{} + 0xD2511F53);
    const U64 product1 = MultiplyLow32(counters->c2, U64{} + 0xCD9E8D57);
    counters->c0 = (product1 >> 32) ^ counters->c1 ^ key0;
    counters->c2 = (product0 >> 32) ^ counters->c3 ^ key1;
    counters->c1 = product1;
    counters->c3 = product0;
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
}

// Puts `even` i into lane 2i and `odd` i into lane 2i + 1.
TROUPE_INLINE U32 Interleave(U64 even, U64 odd) {
  return reinterpret_cast<U32>((even & 0xFFFFFFFFu) | (odd << 32));
}

template <typename T>
TROUPE_INLINE void Keep(const T* x, T* y, int64_t count, U32 draws, uint32_t threshold,
                        float scale) {
  if (count <= 0) return;
  const U32 kept = reinterpret_cast<U32>(draws >= U32{} + threshold);
  const F32 scaled = LoadUpTo(x, count) * scale;
  StoreUpTo(y, count, reinterpret_cast<F32>(reinterpret_cast<U32>(scaled) & kept));
}

template <typename T>
TROUPE_INLINE void DropRow(const DropoutArgs& args, const T* x, T* y, uint32_t step, uint32_t slot,
                           uint32_t position) {
  U64 lanes;  // 0, 2, 4, …
  for (int i = 0; i < kLanes / 2; ++i) lanes[i] = static_cast<uint64_t>(2 * i);
  for (int64_t block = 0; block < args.hidden; block += 64) {
    for (int64_t first = 0; first < 16; first += kLanes) {
      const auto group = static_cast<uint64_t>(block / 4 + first);
      Counters even = {lanes + group, U64{} + position, U64{} + slot, U64{} + step};
      Counters odd = {lanes + group + 1, even.c1, even.c2, even.c3};
      Mix(&even, args.key);
      Mix(&odd, args.key);
      const U32 words[4] = {Interleave(even.c0, odd.c0), Interleave(even.c1, odd.c1),
                            Interleave(even.c2, odd.c2), Interleave(even.c3, odd.c3)};
      for (int word = 0; word < 4; ++word) {
        const int64_t at = block + 16 * word + first;
        Keep(x + at, y + at, args.hidden - at, words[word], args.threshold, args.scale);
      }
    }
  }
}

template <typename T>
void Dropout(const DropoutArgs& args, int thread, int threads) {
  const Part part = PartOf(args.rows, thread, threads);
  for (int64_t r = part.begin; r < part.end; ++r) {
    const int64_t row = args.own.At(r);
    const int32_t* sample = args.samples + row / args.held.rows * 2;
    const T* x = static_cast<const T*>(args.x) + r * args.hidden;
    T* y = static_cast<T*>(args.y) + r * args.hidden;
    if (sample[0] != 0) {
      DropRow(args, x, y, static_cast<uint32_t>(sample[0]), static_cast<uint32_t>(sample[1]),
              static_cast<uint32_t>(args.held.Position(row % args.held.rows)));
    } else if (x != y) {
      std::memcpy(y, x, static_cast<size_t>(args.hidden) * sizeof(T));
    }
  }
}

template void Dropout<float>(const DropoutArgs&, int, int);
template void Dropout<BFloat16>(const DropoutArgs&, int, int);

}  // namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE

#include "kernels/cpu/level_end.h"
