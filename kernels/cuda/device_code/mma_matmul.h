// bfloat16 matmuls on tensor cores: a block computes one tile of the result, each of its eight
// warps a part of it. Copies to shared memory run three steps ahead of the computation.
#ifndef TROUPE_KERNELS_CUDA_DEVICE_CODE_MMA_MATMUL_H_
#define TROUPE_KERNELS_CUDA_DEVICE_CODE_MMA_MATMUL_H_

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/device_code/async_copy.h"
#include "kernels/cuda/device_code/matmul_tile.h"
#include "kernels/cuda/device_code/mma.h"
#include "kernels/cuda/device_code/numbers.h"
#include "kernels/cuda/device_code/shapes.h"
#include "kernels/numerics/bfloat16.h"

namespace troupe::kernels::cuda {

inline constexpr int kMatmulWarpsDown = 2, kMatmulWarpsAcross = 4;
inline constexpr int kMatmulThreads = kMatmulWarpsDown * kMatmulWarpsAcross * kWarp;

// A tile of an operand in its memory layout: kLines rows of kWidth elements. Chunks of sixteen
// bytes are permuted so that equal columns of eight adjacent rows are in different banks, where
// ldmatrix reads them at once.
template <int kLines, int kWidth>
struct OperandTile {
  static constexpr int kLineCount = kLines, kLineWidth = kWidth, kElements = kLines * kWidth;
  static constexpr int kChunks = kWidth / 8;
  BFloat16* base;

  TROUPE_DEVICE BFloat16* At(int line, int column) const {
    const int turn = kChunks == 4 ? line / 2 % 4 : line % 8;
    return base + line * kWidth + ((column / 8) ^ turn) * 8;
  }
};

// Copies tiles of a matrix; each thread always copies the same elements of a tile.
template <int kLines, int kWidth>
class OperandCopy {
 public:
  // `packs`: the rows of the matrix, which are `stride` elements apart, are multiples of sixteen
  // bytes.
  TROUPE_DEVICE OperandCopy(const BFloat16* matrix, int64_t stride, bool packs)
      : matrix_(matrix), stride_(stride), packs_(packs) {}

  // Copies these rows and columns, asynchronously if `packs`; elements beyond them become zeros.
  TROUPE_DEVICE void Begin(const OperandTile<kLines, kWidth>& tile, Span lines,
                           Span columns) const {
    const int line = static_cast<int>(ThreadIndex()) / kChunks;
    const int column = static_cast<int>(ThreadIndex()) % kChunks * 8;
    const int width = columns.end - columns.begin - column;
    const BFloat16* from = matrix_ + (lines.begin + line) * stride_ + columns.begin + column;
    TROUPE_UNROLL
    for (int i = 0; i < kLines; i += kLinesAtOnce) {
      BFloat16* const to = tile.At(line, column) + i * kWidth;
      const bool there = line + i < lines.end - lines.begin && width > 0;
      if (packs_) {
        BeginCopy(to, there ? from + i * stride_ : matrix_, there ? kCopyBytes : 0);
      } else {
        TROUPE_NO_UNROLL
        for (int k = 0; k < 8; ++k) to[k] = there && k < width ? from[i * stride_ + k] : BFloat16{};
      }
    }
  }

 private:
  static constexpr int kChunks = OperandTile<kLines, kWidth>::kChunks;
  static constexpr int kLinesAtOnce = kMatmulThreads / kChunks;
  static_assert(kLines % kLinesAtOnce == 0 && kLinesAtOnce % 8 == 0,
                "the places of a tile repeat after eight lines");

  const BFloat16* const matrix_;
  const int64_t stride_;
  const bool packs_;
};

// Blocks per multiprocessor. Before sm_90, ptxas does not find enough registers for two blocks with
// large tiles of the counted forward matmul.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
template <MatmulKind kKind, bool kCounted, int kRows>
inline constexpr int kMatmulBlocks = kKind == MatmulKind::kForward&& kCounted&& kRows > 64 ? 1 : 2;
#else
template <MatmulKind kKind, bool kCounted, int kRows>
inline constexpr int kMatmulBlocks = 2;
#endif

// Adds the matmul of one step to a warp's accumulators, which begin at row `down` and column
// `across` of the tile.
template <MatmulKind kKind, typename A, typename B, int kDown, int kAcross>
TROUPE_DEVICE void AddStep(const A& a, const B& b, int down, int across,
                           FragmentC (&sums)[kDown][kAcross]) {
  TROUPE_UNROLL
  for (int k = 0; k < kMatmulDepth; k += 16) {
    FragmentA left[kDown];
    TROUPE_UNROLL
    for (int i = 0; i < kDown; ++i) {
      left[i] = kKind == MatmulKind::kWeightGradient ? LoadATransposed(a, k, down + 16 * i)
                                                     : LoadA(a, down + 16 * i, k);
    }
    TROUPE_UNROLL
    for (int j = 0; j < kAcross; j += 2) {
      const FragmentB2 right = kKind == MatmulKind::kForward ? LoadBTransposed(b, across + 8 * j, k)
                                                             : LoadB(b, k, across + 8 * j);
      TROUPE_UNROLL
      for (int i = 0; i < kDown; ++i) {
        MultiplyAdd(sums[i][j], left[i], right.first);
        MultiplyAdd(sums[i][j + 1], left[i], right.second);
      }
    }
  }
}

// Stores a warp's results.
template <MatmulKind kKind, int kDown, int kAcross>
TROUPE_DEVICE void StoreSums(const MatmulLaunchArgs& args, const MatmulTile& part, int down,
                             int across, const FragmentC (&sums)[kDown][kAcross]) {
  constexpr bool kWeight = kKind == MatmulKind::kWeightGradient;
  using C = std::conditional_t<kWeight, float, BFloat16>;
  const MatmulArgs& matmul = args.matmul;
  const int64_t c_stride = kKind == MatmulKind::kForward ? matmul.n : matmul.k;
  C* const c = static_cast<C*>(matmul.c) + (kWeight ? part.expert * matmul.n * matmul.k : 0);
  const bool adds = kWeight && matmul.accumulate;
  TROUPE_UNROLL
  for (int i = 0; i < kDown; ++i) {
    TROUPE_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int row = part.rows.begin + down + 16 * i + 8 * half + Lane() / 4;
      if (row >= part.rows.end) continue;
      TROUPE_UNROLL
      for (int j = 0; j < kAcross; ++j) {
        const int column = part.columns.begin + across + 8 * j + Lane() % 4 * 2;
        C* const to = c + row * c_stride + column;
        const float first = sums[i][j].of[2 * half], second = sums[i][j].of[2 * half + 1];
        if (args.c_packs && column < part.columns.end) {
          Pack<C, 2> pair;
          pair.Set(0, first + (adds ? Pack<C, 2>::Load(to)[0] : 0.0f));
          pair.Set(1, second + (adds ? Pack<C, 2>::Load(to)[1] : 0.0f));
          pair.Store(to);
          continue;
        }
        if (column < part.columns.end) to[0] = Narrow<C>(first + (adds ? Widen(to[0]) : 0.0f));
        if (column + 1 < part.columns.end) to[1] = Narrow<C>(second + (adds ? Widen(to[1]) : 0.0f));
      }
    }
  }
}

template <MatmulKind kKind, bool kCounted, int kRows, int kColumns>
TROUPE_KERNEL_OF(kMatmulThreads, (kMatmulBlocks<kKind, kCounted, kRows>))
void MmaMatmulKernel(MatmulLaunchArgs args) {
  constexpr bool kForward = kKind == MatmulKind::kForward;
  constexpr bool kWeight = kKind == MatmulKind::kWeightGradient;
  // The summed dimension runs along the rows of an operand, or across them.
  using A = OperandTile<kWeight ? kMatmulDepth : kRows, kWeight ? kRows : kMatmulDepth>;
  using B = OperandTile<kForward ? kColumns : kMatmulDepth, kForward ? kMatmulDepth : kColumns>;
  constexpr int kWarpRows = kRows / kMatmulWarpsDown, kWarpColumns = kColumns / kMatmulWarpsAcross;
  constexpr int kDown = kWarpRows / 16, kAcross = kWarpColumns / 8;

  const MatmulArgs& matmul = args.matmul;
  const MatmulTile part = TileOfBlock<kKind, kCounted, kRows, kColumns>(args);
  if (!part.works) return;
  const OperandCopy<A::kLineCount, A::kLineWidth> a(static_cast<const BFloat16*>(matmul.a),
                                                    kForward ? matmul.k : matmul.n, args.a_packs);
  const OperandCopy<B::kLineCount, B::kLineWidth> b(
      static_cast<const BFloat16*>(matmul.b) + (kWeight ? 0 : part.expert * matmul.n * matmul.k),
      matmul.k, args.b_packs);
  auto* const shared = reinterpret_cast<BFloat16*>(DynamicShared());
  const auto a_of = [&](int step) {
    return A{shared + step % kMatmulSteps * (A::kElements + B::kElements)};
  };
  const auto b_of = [&](int step) { return B{a_of(step).base + A::kElements}; };

  MatmulSteps<kKind, kCounted, kMatmulDepth> steps(matmul, part.expert);
  int begun = 0, slot = 0;  // started steps, and groups of copies
  const auto begin_step = [&] {
    const Span step = steps.Next();
    if (step.begin < step.end) {
      a.Begin(a_of(slot), kWeight ? step : part.rows, kWeight ? part.rows : step);
      b.Begin(b_of(slot), kForward ? part.columns : step, kForward ? step : part.columns);
      ++begun;
    }
    EndCopyGroup();
    ++slot;
  };
  for (int ahead = 0; ahead < kMatmulSteps - 1; ++ahead) begin_step();

  const int down = Warp() / kMatmulWarpsAcross * kWarpRows;
  const int across = Warp() % kMatmulWarpsAcross * kWarpColumns;
  FragmentC sums[kDown][kAcross] = {};
  for (int step = 0; step < begun; ++step) {
    WaitForCopies<kMatmulSteps - 2>();
    SyncBlock();  // this step is visible to all, and the next buffer is free
    begin_step();
    AddStep<kKind>(a_of(step), b_of(step), down, across, sums);
  }
  if (kWeight && begun == 0 && matmul.accumulate) return;
  StoreSums<kKind>(args, part, down, across, sums);
}

template <MatmulKind kKind, bool kCounted, int kSize>
KernelLaunch MmaMatmulOf(const char* name, const MatmulArgs& args) {
  const MatmulTiling shape = TilingOf(args, kSize, kSize);
  const int64_t a_width = kKind == MatmulKind::kForward ? args.k : args.n;
  const int64_t c_width = kKind == MatmulKind::kForward ? args.n : args.k;
  return MakeLaunch(name, &MmaMatmulKernel<kKind, kCounted, kSize, kSize>,
                    {.blocks_x = static_cast<unsigned>(shape.blocks()),
                     .threads = kMatmulThreads,
                     .shared_bytes = MatmulSharedBytes(kSize, kSize)},
                    MatmulLaunchArgs{args, shape.row_tiles, shape.column_tiles,
                                     Packs(a_width, sizeof(BFloat16), {args.a}),
                                     Packs(args.k, sizeof(BFloat16), {args.b}),
                                     c_width % 2 == 0 && Packs(0, 1, {args.c})});
}

template <bool kCounted, int kSize>
KernelLaunch MmaMatmulOf(const char* name, const MatmulArgs& args) {
  switch (args.kind) {
    case MatmulKind::kForward:
      return MmaMatmulOf<MatmulKind::kForward, kCounted, kSize>(name, args);
    case MatmulKind::kInputGradient:
      return MmaMatmulOf<MatmulKind::kInputGradient, kCounted, kSize>(name, args);
    default:
      return MmaMatmulOf<MatmulKind::kWeightGradient, kCounted, kSize>(name, args);
  }
}

template <bool kCounted>
KernelLaunch MmaMatmul(const char* name, const MatmulArgs& args) {
  constexpr int kLarge = 128, kSmall = 64;
  return UsesSmallTiles(args, kLarge) ? MmaMatmulOf<kCounted, kSmall>(name, args)
                                      : MmaMatmulOf<kCounted, kLarge>(name, args);
}

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_DEVICE_CODE_MMA_MATMUL_H_
