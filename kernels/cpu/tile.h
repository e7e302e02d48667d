// Register-blocked matmuls of small packed matrices for attention: C[M,N] (+)= A[M,K] B[K,N],
// accumulated in float32.
//
// Operands are 32-bit words: a float32, or at the avx512_bf16 level a pair of bfloat16 of two
// adjacent k, so that one instruction adds both terms. A word of A is broadcast, a row of B is read
// as vectors, and C stays in registers. Included after level_target.h.
#ifndef TROUPE_KERNELS_CPU_TILE_H_
#define TROUPE_KERNELS_CPU_TILE_H_

namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE {

// Size of the tile of C in registers, in rows and vectors.
constexpr int kTileRows = 6;
constexpr int kTileVectors = TROUPE_LEVEL >= 2 ? 4 : 2;

struct TileOperands {
  const uint32_t* a;  // A(m, k) at a[m·a_row + k·a_k]
  int64_t a_row, a_k;
  const uint32_t* b;  // B(k, n) at b[k·b_row + n]
  int64_t b_row;
  float* c;  // C(m, n) at c[m·c_row + n]
  int64_t c_row;
  int64_t k_words;
};

template <bool kPairs>
TROUPE_INLINE F32 MultiplyAdd(F32 sum, uint32_t a, U32 b) {
#if TROUPE_LEVEL == 3
  if constexpr (kPairs) {
    return (F32)_mm512_dpbf16_ps((__m512)sum, (__m512bh)b,
                                 (__m512bh)_mm512_set1_epi32(static_cast<int>(a)));
  }
#endif
  float value;
  std::memcpy(&value, &a, sizeof(value));
  return sum + Set(value) * reinterpret_cast<F32>(b);
}

template <int kRows, int kVectors, bool kPairs>
inline __attribute__((noinline)) void MultiplyTile(const TileOperands& p, bool accumulate) {
  F32 sums[kRows][kVectors];
#pragma GCC unroll 8
  for (int m = 0; m < kRows; ++m) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      sums[m][v] = accumulate ? Load(p.c + m * p.c_row + v * kLanes) : F32{};
    }
  }
  const uint32_t* a = p.a;
  const uint32_t* b = p.b;
  for (int64_t k = 0; k < p.k_words; ++k) {
    U32 row[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      row[v] = *reinterpret_cast<const U32Unaligned*>(b + v * kLanes);
    }
#pragma GCC unroll 8
    for (int m = 0; m < kRows; ++m) {
      const uint32_t word = a[m * p.a_row];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[m][v] = MultiplyAdd<kPairs>(sums[m][v], word, row[v]);
    }
    a += p.a_k;
    b += p.b_row;
  }
#pragma GCC unroll 8
  for (int m = 0; m < kRows; ++m) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) Store(p.c + m * p.c_row + v * kLanes, sums[m][v]);
  }
}

template <int kVectors, bool kPairs>
TROUPE_INLINE void MultiplyTileRows(TileOperands p, int64_t rows, bool accumulate) {
  for (; rows >= kTileRows; rows -= kTileRows) {
    MultiplyTile<kTileRows, kVectors, kPairs>(p, accumulate);
    p.a += kTileRows * p.a_row;
    p.c += kTileRows * p.c_row;
  }
  switch (rows) {
    case 5:
      return MultiplyTile<5, kVectors, kPairs>(p, accumulate);
    case 4:
      return MultiplyTile<4, kVectors, kPairs>(p, accumulate);
    case 3:
      return MultiplyTile<3, kVectors, kPairs>(p, accumulate);
    case 2:
      return MultiplyTile<2, kVectors, kPairs>(p, accumulate);
    case 1:
      return MultiplyTile<1, kVectors, kPairs>(p, accumulate);
    default:
      return;
  }
}

// `columns` must be a multiple of kLanes.
template <bool kPairs>
TROUPE_INLINE void Multiply(TileOperands p, int64_t rows, int64_t columns, bool accumulate) {
  int64_t vectors = columns / kLanes;
  for (; vectors >= kTileVectors; vectors -= kTileVectors) {
    MultiplyTileRows<kTileVectors, kPairs>(p, rows, accumulate);
    p.b += kTileVectors * kLanes;
    p.c += kTileVectors * kLanes;
  }
  for (; vectors > 0; --vectors) {
    MultiplyTileRows<1, kPairs>(p, rows, accumulate);
    p.b += kLanes;
    p.c += kLanes;
  }
}

}  // namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE

#endif  // TROUPE_KERNELS_CPU_TILE_H_
