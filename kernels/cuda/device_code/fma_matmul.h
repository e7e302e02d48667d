// Matmuls in true float32, whose operands are widened to float32: a block of 256 threads computes
// one tile of the result, each thread four rows by four columns of it.
#ifndef TROUPE_KERNELS_CUDA_DEVICE_CODE_FMA_MATMUL_H_
#define TROUPE_KERNELS_CUDA_DEVICE_CODE_FMA_MATMUL_H_

#include <cstdint>

#include "kernels/cuda/device_code/matmul_tile.h"
#include "kernels/cuda/device_code/numbers.h"
#include "kernels/cuda/device_code/shapes.h"

namespace troupe::kernels::cuda {

inline constexpr int kFmaThreads = 256;
inline constexpr int kFmaDepth = 16;  // extent of the summed dimension in one step

// A tile of an operand: kFmaDepth deep, kExtent rows or columns of the result.
template <typename T, bool kAlongLines, int kExtent>
class FmaOperand {
 public:
  static constexpr int kStride = kExtent + 4;
  static constexpr int kLines = kAlongLines ? kExtent : kFmaDepth;
  static constexpr int kWidth = kAlongLines ? kFmaDepth : kExtent;
  static constexpr int kChunks = kLines * kWidth / 4;
  static constexpr int kOwn = (kChunks + kFmaThreads - 1) / kFmaThreads;  // chunks per thread

  // The summed dimension runs along the rows of the matrix if kAlongLines, else along its columns.
  TROUPE_DEVICE void Load(const T* matrix, int64_t stride, Span depth, Span extent, bool packs) {
    const Span lines = kAlongLines ? extent : depth, columns = kAlongLines ? depth : extent;
    TROUPE_UNROLL
    for (int own = 0; own < kOwn; ++own) {
      const int chunk = own * kFmaThreads + static_cast<int>(ThreadIndex());
      const int line = lines.begin + chunk / (kWidth / 4);
      const int column = columns.begin + chunk % (kWidth / 4) * 4;
      values_[own] = {};
      if (chunk >= kChunks || line >= lines.end || column >= columns.end) continue;
      const T* const from = matrix + line * stride + column;
      if (packs) {
        values_[own] = Pack<T, 4>::Load(from);
        continue;
      }
      TROUPE_UNROLL
      for (int i = 0; i < 4; ++i) {
        if (column + i < columns.end) values_[own].values[i] = from[i];
      }
    }
  }

  // Stores the tile to shared memory, f[kFmaDepth][kStride].
  TROUPE_DEVICE void Store(float* shared) const {
    TROUPE_UNROLL
    for (int own = 0; own < kOwn; ++own) {
      const int chunk = own * kFmaThreads + static_cast<int>(ThreadIndex());
      if (chunk >= kChunks) continue;
      const int line = chunk / (kWidth / 4), column = chunk % (kWidth / 4) * 4;
      TROUPE_UNROLL
      for (int i = 0; i < 4; ++i) {
        shared[kAlongLines ? (column + i) * kStride + line : line * kStride + column + i] =
            values_[own][i];
      }
    }
  }

 private:
  Pack<T, 4> values_[kOwn];
};

// Stores a thread's results; the first is at row `down` and column `across` of the tile.
template <typename TC, MatmulKind kKind>
TROUPE_DEVICE void StoreSums(const MatmulLaunchArgs& args, const MatmulTile& part, int down,
                             int across, const float (&sums)[4][4]) {
  constexpr bool kWeight = kKind == MatmulKind::kWeightGradient;
  const MatmulArgs& matmul = args.matmul;
  const int64_t c_stride = kKind == MatmulKind::kForward ? matmul.n : matmul.k;
  TC* const c = static_cast<TC*>(matmul.c) + (kWeight ? part.expert * matmul.n * matmul.k : 0);
  const bool adds = kWeight && matmul.accumulate;
  const int column = part.columns.begin + across;
  TROUPE_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int row = part.rows.begin + down + i;
    if (row >= part.rows.end) continue;
    TC* const to = c + row * c_stride + column;
    if (args.c_packs && column < part.columns.end) {
      Pack<TC, 4> four{};
      if (adds) four = Pack<TC, 4>::Load(to);
      TROUPE_UNROLL
      for (int j = 0; j < 4; ++j) four.Set(j, sums[i][j] + (adds ? four[j] : 0.0f));
      four.Store(to);
      continue;
    }
    TROUPE_UNROLL
    for (int j = 0; j < 4; ++j) {
      if (column + j < part.columns.end)
        to[j] = Narrow<TC>(sums[i][j] + (adds ? Widen(to[j]) : 0.0f));
    }
  }
}

// Each thread computes sixteen results.
template <typename TA, typename TB, typename TC, MatmulKind kKind, bool kCounted, int kRows,
          int kColumns>
TROUPE_KERNEL_OF(kFmaThreads, 2)
void FmaMatmulKernel(MatmulLaunchArgs args) {
  static_assert(kRows * kColumns == 16 * kFmaThreads);
  constexpr bool kForward = kKind == MatmulKind::kForward;
  constexpr bool kWeight = kKind == MatmulKind::kWeightGradient;
  using A = FmaOperand<TA, !kWeight, kRows>;
  using B = FmaOperand<TB, kForward, kColumns>;
  TROUPE_SHARED float a_shared alignas(16)[kFmaDepth * A::kStride];
  TROUPE_SHARED float b_shared alignas(16)[kFmaDepth * B::kStride];

  const MatmulArgs& matmul = args.matmul;
  const MatmulTile part = TileOfBlock<kKind, kCounted, kRows, kColumns>(args);
  if (!part.works) return;
  const auto* const a = static_cast<const TA*>(matmul.a);
  const auto* const b =
      static_cast<const TB*>(matmul.b) + (kWeight ? 0 : part.expert * matmul.n * matmul.k);
  const int64_t a_stride = kForward ? matmul.k : matmul.n, b_stride = matmul.k;

  MatmulSteps<kKind, kCounted, kFmaDepth> steps(matmul, part.expert);
  A a_next;
  B b_next;
  const auto load_next = [&] {
    const Span step = steps.Next();
    if (step.begin == step.end) return false;
    a_next.Load(a, a_stride, step, part.rows, args.a_packs);
    b_next.Load(b, b_stride, step, part.columns, args.b_packs);
    return true;
  };
  constexpr int kAcross = kColumns / 4;
  const int down = static_cast<int>(ThreadIndex()) / kAcross * 4;
  const int across = static_cast<int>(ThreadIndex()) % kAcross * 4;
  float sums[4][4] = {};
  bool more = load_next();
  const bool none = !more;
  while (more) {
    SyncBlock();  // all threads are done with the previous step
    a_next.Store(a_shared);
    b_next.Store(b_shared);
    SyncBlock();
    more = load_next();
    TROUPE_UNROLL
    for (int k = 0; k < kFmaDepth; ++k) {
      const auto left = Pack<float, 4>::Load(a_shared + k * A::kStride + down);
      const auto right = Pack<float, 4>::Load(b_shared + k * B::kStride + across);
      TROUPE_UNROLL
      for (int i = 0; i < 4; ++i) {
        TROUPE_UNROLL
        for (int j = 0; j < 4; ++j) sums[i][j] += left[i] * right[j];
      }
    }
  }
  if (kWeight && none && matmul.accumulate) return;
  StoreSums<TC, kKind>(args, part, down, across, sums);
}

template <typename TA, typename TB, typename TC, MatmulKind kKind, bool kCounted, int kRows,
          int kColumns>
KernelLaunch FmaMatmulOf(const char* name, const MatmulArgs& args) {
  const MatmulTiling shape = TilingOf(args, kRows, kColumns);
  const auto packs = [](int64_t width, const void* address) {
    return width % 4 == 0 && Packs(0, 1, {address});
  };
  const int64_t a_width = kKind == MatmulKind::kForward ? args.k : args.n;
  const int64_t c_width = kKind == MatmulKind::kForward ? args.n : args.k;
  return MakeLaunch(
      name, &FmaMatmulKernel<TA, TB, TC, kKind, kCounted, kRows, kColumns>,
      {.blocks_x = static_cast<unsigned>(shape.blocks()), .threads = kFmaThreads},
      MatmulLaunchArgs{args, shape.row_tiles, shape.column_tiles, packs(a_width, args.a),
                       packs(args.k, args.b), packs(c_width, args.c)});
}

// For float32 only.
template <bool kCounted>
KernelLaunch FmaMatmul(const char* name, const MatmulArgs& args) {
  switch (args.kind) {
    case MatmulKind::kForward:
      return FmaMatmulOf<float, float, float, MatmulKind::kForward, kCounted, 64, 64>(name, args);
    case MatmulKind::kInputGradient:
      return FmaMatmulOf<float, float, float, MatmulKind::kInputGradient, kCounted, 64, 64>(name,
                                                                                            args);
    default:
      return FmaMatmulOf<float, float, float, MatmulKind::kWeightGradient, kCounted, 64, 64>(name,
                                                                                             args);
  }
}

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_DEVICE_CODE_FMA_MATMUL_H_
