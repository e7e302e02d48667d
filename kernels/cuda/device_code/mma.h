// The matrix multiply-accumulate of a warp on tensor cores: C[16,8] += A[16,16] · B[16,8], A and B
// in bfloat16, C in float32 (PTX ISA, "Matrix Fragments for mma.m16n8k16"). Every lane holds a part
// of each matrix, a fragment. With g = lane / 4 and t = lane % 4:
//
//   A  register 0: A[g][2t], A[g][2t+1]       register 1: A[g+8][2t], A[g+8][2t+1]
//      register 2: A[g][2t+8], A[g][2t+9]     register 3: A[g+8][2t+8], A[g+8][2t+9]
//   B  register 0: B[2t][g], B[2t+1][g]       register 1: B[2t+8][g], B[2t+9][g]
//   C  register 0: C[g][2t]                   register 1: C[g][2t+1]
//      register 2: C[g+8][2t]                 register 3: C[g+8][2t+1]
//
// A register of A or B has the first of its two elements in its low half. Two C's of adjacent
// columns, rounded, therefore form an A (FragmentOf): a result can be an operand of the next matmul
// without moving between lanes.
//
// All lanes of a warp must call each function together.
#ifndef TROUPE_KERNELS_CUDA_DEVICE_CODE_MMA_H_
#define TROUPE_KERNELS_CUDA_DEVICE_CODE_MMA_H_

#include "kernels/cuda/device_code/numbers.h"
#include "kernels/cuda/device_code/simt.h"
#include "kernels/numerics/bfloat16.h"

namespace troupe::kernels::cuda {

struct FragmentA {
  uint32_t of[4];
};
struct FragmentB {
  uint32_t of[2];
};
struct FragmentC {
  float of[4];
};

// Rounds to nearest even.
TROUPE_DEVICE uint32_t PairOf(float low, float high) {
#ifdef __CUDA_ARCH__
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return uint32_t{Narrow<BFloat16>(low).bits} | uint32_t{Narrow<BFloat16>(high).bits} << 16;
#endif
}

// Forms A[16,16] from `left`, columns 0 to 7, and `right`, columns 8 to 15.
TROUPE_DEVICE FragmentA FragmentOf(const FragmentC& left, const FragmentC& right) {
  return {{PairOf(left.of[0], left.of[1]), PairOf(left.of[2], left.of[3]),
           PairOf(right.of[0], right.of[1]), PairOf(right.of[2], right.of[3])}};
}

#ifndef __CUDACC__
namespace emulator {

inline float LowOf(uint32_t pair) { return ToFloat({static_cast<uint16_t>(pair)}); }
inline float HighOf(uint32_t pair) { return ToFloat({static_cast<uint16_t>(pair >> 16)}); }

struct EightNumbers {
  BFloat16 of[8];
};

// ldmatrix: register r of lane l gets two adjacent elements of row l / 4 of matrix r, or of a
// column if `transposed`. Lane 8 r + i provides the address of row i of matrix r.
inline void LoadMatrices(const BFloat16* row, bool transposed, uint32_t (&to)[4]) {
  EightNumbers own;
  RequireAligned(row, sizeof(own));
  std::memcpy(&own, row, sizeof(own));
  const WarpValues<EightNumbers> rows(own);
  const unsigned lane = ThreadIndex() % 32, g = lane / 4, t = lane % 4;
  for (unsigned r = 0; r < 4; ++r) {
    const auto element = [&](unsigned row, unsigned column) {
      return transposed ? rows[8 * r + column].of[row] : rows[8 * r + row].of[column];
    };
    const BFloat16 low = element(g, 2 * t), high = element(g, 2 * t + 1);
    to[r] = uint32_t{low.bits} | uint32_t{high.bits} << 16;
  }
}

struct Operands {
  FragmentA a;
  FragmentB b;
};

inline void MultiplyAdd(FragmentC& c, const FragmentA& a, const FragmentB& b) {
  const WarpValues<Operands> lanes({a, b});
  const unsigned lane = ThreadIndex() % 32, g = lane / 4, t = lane % 4;
  for (unsigned k = 0; k < 4; ++k) {
    // Rows g and g + 8 of A are in the four lanes of g; columns 2t and 2t + 1 of B are in the four
    // lanes of 2t and of 2t + 1.
    const FragmentA left = lanes[4 * g + k].a;
    const FragmentB columns[] = {lanes[4 * (2 * t) + k].b, lanes[4 * (2 * t + 1) + k].b};
    for (unsigned half = 0; half < 2; ++half) {
      for (unsigned i = 0; i < 4; ++i) {
        const uint32_t x = left.of[2 * half + i / 2], y = columns[i % 2].of[half];
        c.of[i] += LowOf(x) * LowOf(y);
        c.of[i] += HighOf(x) * HighOf(y);
      }
    }
  }
}

}  // namespace emulator
#endif

TROUPE_DEVICE void MultiplyAdd(FragmentC& c, const FragmentA& a, const FragmentB& b) {
#ifdef __CUDA_ARCH__
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(c.of[0]), "+f"(c.of[1]), "+f"(c.of[2]), "+f"(c.of[3])
      : "r"(a.of[0]), "r"(a.of[1]), "r"(a.of[2]), "r"(a.of[3]), "r"(b.of[0]), "r"(b.of[1]));
#elif !defined(__CUDACC__)
  emulator::MultiplyAdd(c, a, b);
#endif
}

// Loads four 8·8 matrices from shared memory, one register each. `row` points to eight adjacent
// elements at a multiple of 16 bytes; lane 8 r + i passes row i of matrix r. Without kTransposed a
// lane gets M[g][2t], M[g][2t+1], otherwise M[2t][g], M[2t+1][g].
template <bool kTransposed>
TROUPE_DEVICE void LoadMatrices(const BFloat16* row, uint32_t (&to)[4]) {
#ifdef __CUDA_ARCH__
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
  }
#elif !defined(__CUDACC__)
  emulator::LoadMatrices(row, kTransposed, to);
#endif
}

// Load fragments from a tile in shared memory: any type whose At(row, column) is the address of
// eight adjacent elements of a row, with column a multiple of 8. Rows and columns are multiples of
// 8.

// A[i][k] = tile[row + i][column + k].
template <typename Tile>
TROUPE_DEVICE FragmentA LoadA(const Tile& tile, int row, int column) {
  const int lane = Lane();
  FragmentA a;
  LoadMatrices<false>(tile.At(row + lane % 16, column + lane / 16 * 8), a.of);
  return a;
}
// A[i][k] = tile[row + k][column + i].
template <typename Tile>
TROUPE_DEVICE FragmentA LoadATransposed(const Tile& tile, int row, int column) {
  const int lane = Lane();
  FragmentA a;
  LoadMatrices<true>(tile.At(row + lane % 8 + lane / 16 * 8, column + lane / 8 % 2 * 8), a.of);
  return a;
}

// Two B's of adjacent columns: [16,16] = [first, second].
struct FragmentB2 {
  FragmentB first, second;
};
// B[k][j] = tile[row + k][column + j].
template <typename Tile>
TROUPE_DEVICE FragmentB2 LoadB(const Tile& tile, int row, int column) {
  const int lane = Lane();
  uint32_t of[4];
  LoadMatrices<true>(tile.At(row + lane % 16, column + lane / 16 * 8), of);
  return {{{of[0], of[1]}}, {{of[2], of[3]}}};
}
// B[k][j] = tile[row + j][column + k].
template <typename Tile>
TROUPE_DEVICE FragmentB2 LoadBTransposed(const Tile& tile, int row, int column) {
  const int lane = Lane();
  uint32_t of[4];
  LoadMatrices<false>(tile.At(row + lane % 8 + lane / 16 * 8, column + lane / 8 % 2 * 8), of);
  return {{{of[0], of[1]}}, {{of[2], of[3]}}};
}

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_DEVICE_CODE_MMA_H_
