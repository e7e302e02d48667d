// RMSNorm, alone or after a residual sum, and its gradient with the residual's gradient added: a block a row forward; in
// the gradient a fixed number of blocks goes over the rows, each with its sums of dw, which a second kernel adds up in
// order.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/numbers.h"
#include "kernels/cuda/shapes.h"

namespace troupe::kernels::cuda {
namespace {

constexpr unsigned kRowThreads = 512;  // at most, of a row
constexpr int kFinishRows = 32;         // warps of a block of the second kernel, each with every 32nd partial sum

template <typename T, int N>
TROUPE_KERNEL_OF(kRowThreads, 2) void RmsNormKernel(RmsNormArgs args) {
  TROUPE_SHARED float shared[kWarp + 1];
  const int64_t row = BlockIndex().x, hidden = args.hidden;
  const int64_t first = int64_t{ThreadIndex()} * N, step = int64_t{BlockThreads()} * N;
  const T* x = static_cast<const T*>(args.a) + row * hidden;
  Pack<T, N> kept{};  // a thread's first piece of the row; few rows have more for it
  float squares = 0;
  if (args.b != nullptr) {
    const T* b = static_cast<const T*>(args.b) + row * hidden;
    T* sum = static_cast<T*>(args.sum) + row * hidden;
    for (int64_t h = first; h < hidden; h += step) {
      const auto left = Pack<T, N>::Load(x + h);
      const auto right = Pack<T, N>::Load(b + h);
      Pack<T, N> stored;
      for (int k = 0; k < N; ++k) {
        stored.Set(k, left[k] + right[k]);
        squares += stored[k] * stored[k];  // the norm is of what is stored
      }
      stored.Store(sum + h);
      if (h == first) kept = stored;
    }
    x = sum;
  } else {
    for (int64_t h = first; h < hidden; h += step) {
      const auto v = Pack<T, N>::Load(x + h);
      for (int k = 0; k < N; ++k) squares += v[k] * v[k];
      if (h == first) kept = v;
    }
  }
  const float mean = BlockSum(squares, shared) / static_cast<float>(hidden);
  const float rstd = 1.0f / sqrtf(mean + args.eps);
  if (ThreadIndex() == 0) args.rstd[row] = rstd;
  for (int64_t h = first; h < hidden; h += step) {
    const auto v = h == first ? kept : Pack<T, N>::Load(x + h);
    const auto w = Pack<float, N>::Load(args.w + h);
    Pack<T, N> y;
    for (int k = 0; k < N; ++k) y.Set(k, v[k] * rstd * w[k]);
    y.Store(static_cast<T*>(args.y) + row * hidden + h);
  }
}

// dx = rstd·(g - x·rstd²·mean(g·x)) + dres with g = dy·w. Each thread has the same columns of every row, whose dw it adds
// up in dynamic shared memory, f[H].
template <typename T, int N>
TROUPE_KERNEL_OF(kRowThreads, 2) void RmsNormGradKernel(RmsNormGradArgs args) {
  TROUPE_SHARED float shared[2][kWarp + 1];  // by turns: a row's sum is read while the next one's is made
  auto* const dw = reinterpret_cast<float*>(DynamicShared());
  const int64_t hidden = args.hidden;
  const int64_t first = int64_t{ThreadIndex()} * N, step = int64_t{BlockThreads()} * N;
  for (int64_t h = first; h < hidden; h += step) {
    for (int k = 0; k < N; ++k) dw[h + k] = 0;
  }
  struct Pieces {
    Pack<T, N> dy, x;
  };
  const auto load = [&args](int64_t row, int64_t h) -> Pieces {
    const int64_t at = row * args.hidden + h;
    return {Pack<T, N>::Load(static_cast<const T*>(args.dy) + at), Pack<T, N>::Load(static_cast<const T*>(args.x) + at)};
  };
  // A thread's first pieces of a row, most often all that it has of it, come while the row before is computed.
  Pieces next{};
  float next_rstd = 0;
  const auto begin_row = [&](int64_t row) {
    if (row >= args.rows) return;
    next_rstd = args.rstd[row];
    if (first < hidden) next = load(row, first);
  };
  begin_row(BlockIndex().x);
  int turn = 0;
  for (int64_t row = BlockIndex().x; row < args.rows; row += Blocks().x) {
    const Pieces own = next;
    const float rstd = next_rstd;
    begin_row(row + Blocks().x);
    const T* const dres = args.dres != nullptr ? static_cast<const T*>(args.dres) + row * hidden : nullptr;
    Pack<T, N> own_dres{};
    if (dres != nullptr && first < hidden) own_dres = Pack<T, N>::Load(dres + first);
    float dot = 0;
    for (int64_t h = first; h < hidden; h += step) {
      const Pieces at = h == first ? own : load(row, h);
      const auto w = Pack<float, N>::Load(args.w + h);
      for (int k = 0; k < N; ++k) {
        const float product = at.dy[k] * at.x[k];
        dot += product * w[k];
        dw[h + k] += product * rstd;
      }
    }
    const float shift =
        rstd * rstd * BlockSum(dot, shared[turn]) / static_cast<float>(hidden);
    turn ^= 1;
    for (int64_t h = first; h < hidden; h += step) {
      const Pieces at = h == first ? own : load(row, h);
      const auto w = Pack<float, N>::Load(args.w + h);
      Pack<T, N> added = own_dres;
      if (dres != nullptr && h != first) added = Pack<T, N>::Load(dres + h);
      Pack<T, N> dx;
      for (int k = 0; k < N; ++k) {
        dx.Set(k, rstd * (at.dy[k] * w[k] - at.x[k] * shift) + (dres != nullptr ? added[k] : 0));
      }
      dx.Store(static_cast<T*>(args.dx) + row * hidden + h);
    }
  }
  for (int64_t h = first; h < hidden; h += step) {
    Pack<float, N> sums;
    for (int k = 0; k < N; ++k) sums.Set(k, dw[h + k]);
    sums.Store(args.partial + BlockIndex().x * hidden + h);
  }
}

// A lane a column; the warps' sums are added in their order.
struct FinishArgs {
  RmsNormGradArgs args;
  int64_t blocks;  // that have left sums
};
TROUPE_KERNEL_OF(kFinishRows * kWarp, 1) void RmsNormGradFinishKernel(FinishArgs finish) {
  const RmsNormGradArgs& args = finish.args;
  TROUPE_SHARED float sums[kFinishRows][kWarp];
  const int64_t h = int64_t{BlockIndex().x} * kWarp + Lane();
  float sum = 0;
  if (h < args.hidden) {
    for (int64_t b = Warp(); b < finish.blocks; b += kFinishRows) sum += args.partial[b * args.hidden + h];
  }
  sums[Warp()][Lane()] = sum;
  SyncBlock();
  if (Warp() != 0 || h >= args.hidden) return;
  sum = args.accumulate ? args.dw[h] : 0;
  for (int w = 0; w < kFinishRows; ++w) sum += sums[w][Lane()];
  args.dw[h] = sum;
}

template <typename T>
KernelLaunch RmsNormOf(const RmsNormArgs& args) {
  constexpr int kMany = kPack<T>;
  return Packs(args.hidden, sizeof(T), {args.a, args.b, args.w, args.sum, args.y})
             ? MakeLaunch("rms_norm", &RmsNormKernel<T, kMany>,
                          BlocksFor(args.rows, args.hidden / kMany, kRowThreads), args)
             : MakeLaunch("rms_norm", &RmsNormKernel<T, 1>, BlocksFor(args.rows, args.hidden, kRowThreads),
                          args);
}

template <typename T>
KernelLaunch RmsNormGradOf(const RmsNormGradArgs& args) {
  constexpr int kMany = kPack<T>;
  const bool packs =
      Packs(args.hidden, sizeof(T), {args.dy, args.x, args.w, args.dres, args.dx, args.partial});
  LaunchShape shape =
      BlocksFor(RmsNormGradBlocks(args.rows, args.hidden), packs ? args.hidden / kMany : args.hidden, kRowThreads);
  shape.shared_bytes = static_cast<size_t>(args.hidden) * sizeof(float);
  return packs ? MakeLaunch("rms_norm_grad", &RmsNormGradKernel<T, kMany>, shape, args)
               : MakeLaunch("rms_norm_grad", &RmsNormGradKernel<T, 1>, shape, args);
}

}  // namespace

// Two for each of 132 multiprocessors, and up to four times as many of narrow rows: that many bytes are under way at once.
int64_t RmsNormGradBlocks(int64_t rows, int64_t hidden) {
  constexpr int64_t kBlocks = 264, kWide = 2048;
  return std::min(rows, kBlocks * std::clamp<int64_t>(kWide / hidden, 1, 4));
}

KernelLaunch RmsNorm(const RmsNormArgs& args, bool bfloat16) {
  return bfloat16 ? RmsNormOf<BFloat16>(args) : RmsNormOf<float>(args);
}

KernelLaunch RmsNormGrad(const RmsNormGradArgs& args, bool bfloat16) {
  return bfloat16 ? RmsNormGradOf<BFloat16>(args) : RmsNormGradOf<float>(args);
}

KernelLaunch RmsNormGradFinish(const RmsNormGradArgs& args) {
  return MakeLaunch("rms_norm_grad_finish", &RmsNormGradFinishKernel,
                    {.blocks_x = static_cast<unsigned>((args.hidden + kWarp - 1) / kWarp),
                     .threads = kFinishRows * kWarp},
                    FinishArgs{args, RmsNormGradBlocks(args.rows, args.hidden)});
}

}  // namespace troupe::kernels::cuda
