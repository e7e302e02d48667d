// The tiles of the quantisation kernels (kernels/cuda/kernels/quantize.cu): kTile x kTile elements
// of bfloat16, which a block's threads hold in registers, two adjacent elements per word.
#ifndef TROUPE_KERNELS_CUDA_DEVICE_CODE_QUANTIZE_TILE_H_
#define TROUPE_KERNELS_CUDA_DEVICE_CODE_QUANTIZE_TILE_H_

#include <bit>
#include <cstdint>

#include "kernels/cuda/device_code/numbers.h"
#include "kernels/numerics/bfloat16.h"
#include "model/program/float8.h"

namespace troupe::kernels::cuda {

inline constexpr int kTile = static_cast<int>(model::kFloat8Block);
inline constexpr int kQuantizeThreads = 256;

// A thread holds kAcross adjacent elements in each of kRowsOfThread rows of a tile: kParts groups
// of kDown adjacent rows.
inline constexpr int kAcross = 8, kDown = 4, kParts = 2;
inline constexpr int kPairs = kAcross / 2;
inline constexpr int kRowsOfThread = kDown * kParts;
inline constexpr int kThreadsAcross = kTile / kAcross;
static_assert(kQuantizeThreads / kThreadsAcross * kRowsOfThread == kTile);

// Indices within a tile: the thread's row i, and its first column.
TROUPE_DEVICE int RowOfThread(int thread, int i) {
  return i / kDown * (kTile / kParts) + thread / kThreadsAcross * kDown + i % kDown;
}
TROUPE_DEVICE int ColumnOfThread(int thread) { return thread % kThreadsAcross * kAcross; }

// Two adjacent bfloat16 elements in a word, the first in the low half.
using Pair = uint32_t;
TROUPE_DEVICE float First(Pair pair) { return std::bit_cast<float>(pair << 16); }
TROUPE_DEVICE float Second(Pair pair) { return std::bit_cast<float>(pair & 0xFFFF0000u); }
TROUPE_DEVICE Pair PairOf(BFloat16 first, BFloat16 second) {
  return first.bits | uint32_t{second.bits} << 16;
}

using Neighbours = Pack<Pair, kPairs>;  // kAcross elements of a row

// REQUIRES: the address is a multiple of their size.
TROUPE_DEVICE Neighbours NeighboursAt(const BFloat16* from) {
  return std::bit_cast<Neighbours>(Pack<BFloat16, kAcross>::Load(from));
}

// The first `count` of kAcross adjacent elements, as pairs; the others are zeros. kAtOnce: all are
// loaded at construction, which REQUIRES count >= kAcross or <= 0, and the alignment of
// NeighboursAt; otherwise each is loaded on access.
template <bool kAtOnce>
class PairsAt {
 public:
  TROUPE_DEVICE PairsAt(const BFloat16* from, int count) : from_(from), count_(count) {
    if (kAtOnce && count > 0) all_ = NeighboursAt(from);
  }
  TROUPE_DEVICE Pair operator[](int p) const {
    if (kAtOnce) return all_.values[p];
    const BFloat16 first = 2 * p < count_ ? from_[2 * p] : BFloat16{0};
    const BFloat16 second = 2 * p + 1 < count_ ? from_[2 * p + 1] : BFloat16{0};
    return PairOf(first, second);
  }

 private:
  const BFloat16* from_;
  int count_;
  Neighbours all_ = {};
};

// Magnitudes of bfloat16 as integers, which have the same order.
inline constexpr uint32_t kInfinite = 0x7F80;
TROUPE_DEVICE uint32_t Larger(uint32_t a, uint32_t b) { return a > b ? a : b; }
TROUPE_DEVICE uint32_t FirstMagnitude(Pair pair) { return pair & 0x7FFFu; }
TROUPE_DEVICE uint32_t SecondMagnitude(Pair pair) { return pair >> 16 & 0x7FFFu; }
TROUPE_DEVICE uint32_t LargestOf(const Neighbours& pairs) {
  uint32_t largest = 0;
  TROUPE_UNROLL
  for (const Pair pair : pairs.values)
    largest = Larger(largest, Larger(FirstMagnitude(pair), SecondMagnitude(pair)));
  return largest;
}
TROUPE_DEVICE float NumberOf(uint32_t magnitude) { return std::bit_cast<float>(magnitude << 16); }
// Replaces infinities by NaN.
TROUPE_DEVICE Pair WithoutInfinities(Pair pair) {
  return pair | (FirstMagnitude(pair) >= kInfinite ? 0x40u : 0u) |
         (SecondMagnitude(pair) >= kInfinite ? 0x400000u : 0u);
}

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_DEVICE_CODE_QUANTIZE_TILE_H_
