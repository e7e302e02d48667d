// RMSNorm, alone or after a residual sum, and its gradient plus the residual's gradient. Forward
// uses one block per row. In the gradient a fixed number of blocks iterates over the rows, each
// with its own partial sums of dw, which a second kernel adds up in order. Memory-bound: if a
// block's threads can hold a row, one pack each, every element is read once, and the gradient loads
// the next row while it computes the current one.
#include "kernels/cuda/device_code/numbers.h"
#include "kernels/cuda/device_code/shapes.h"
#include "kernels/cuda/kernels/kernels.h"

namespace troupe::kernels::cuda {
namespace {

constexpr int kHeldThreads = 1024, kHeldGradThreads = 512;  // maximum for a block that holds a row
// Two blocks of the gradient fit on a multiprocessor; compiled for Blackwell they would spill
// registers, so there one must suffice.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
[[maybe_unused]] constexpr int kHeldGradBlocks = 1;
#else
[[maybe_unused]] constexpr int kHeldGradBlocks = 2;
#endif
constexpr int kFinishRows = 32;  // warps per block of the second kernel

// Number of blocks of the gradient: for each of 132 multiprocessors as many as together have 1,024
// threads of eight elements.
constexpr int64_t GradBlocks(int64_t rows, int64_t hidden) {
  const int64_t blocks = 132 * (hidden > 4096 ? 2 : hidden < 512 ? 16 : 8192 / hidden);
  return rows < blocks ? rows : blocks;
}

// For rows that fit into the registers of a block's threads.
template <typename T, int N>
TROUPE_KERNEL_OF(kHeldThreads, 1)
void RmsNormHeldKernel(RmsNormArgs args) {
  TROUPE_SHARED float shared[kWarp + 1];
  const int64_t row = BlockIndex().x, hidden = args.hidden, h = int64_t{ThreadIndex()} * N;
  const int64_t at = row * hidden + h;
  const bool holds = h < hidden;
  Pack<T, N> x{};
  Pack<float, N> w{};
  float squares = 0;
  if (holds) {
    x = Pack<T, N>::Load(static_cast<const T*>(args.a) + at);
    w = Pack<float, N>::Load(args.w + h);
    if (args.b != nullptr) {
      const auto b = Pack<T, N>::Load(static_cast<const T*>(args.b) + at);
      for (int k = 0; k < N; ++k) x.Set(k, x[k] + b[k]);  // the norm of the rounded sum
      x.Store(static_cast<T*>(args.sum) + at);
    }
    for (int k = 0; k < N; ++k) squares += x[k] * x[k];
  }
  const float mean = BlockSum(squares, shared) / static_cast<float>(hidden);
  const float rstd = 1.0f / sqrtf(mean + args.eps);
  if (ThreadIndex() == 0) args.rstd[row] = rstd;
  if (!holds) return;
  Pack<T, N> y;
  for (int k = 0; k < N; ++k) y.Set(k, x[k] * rstd * w[k]);
  y.Store(static_cast<T*>(args.y) + at);
}

template <typename T, int N>
TROUPE_KERNEL_OF(kHeldThreads, 1)
void RmsNormKernel(RmsNormArgs args) {
  TROUPE_SHARED float shared[kWarp + 1];
  const int64_t row = BlockIndex().x, hidden = args.hidden;
  const int64_t first = int64_t{ThreadIndex()} * N, step = int64_t{BlockThreads()} * N;
  const T* x = static_cast<const T*>(args.a) + row * hidden;
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
        squares += stored[k] * stored[k];  // the norm of the rounded sum
      }
      stored.Store(sum + h);
    }
    x = sum;
  } else {
    for (int64_t h = first; h < hidden; h += step) {
      const auto v = Pack<T, N>::Load(x + h);
      for (int k = 0; k < N; ++k) squares += v[k] * v[k];
    }
  }
  const float mean = BlockSum(squares, shared) / static_cast<float>(hidden);
  const float rstd = 1.0f / sqrtf(mean + args.eps);
  if (ThreadIndex() == 0) args.rstd[row] = rstd;
  for (int64_t h = first; h < hidden; h += step) {
    const auto v = Pack<T, N>::Load(x + h);  // written by this thread: in the L1 cache
    const auto w = Pack<float, N>::Load(args.w + h);
    Pack<T, N> y;
    for (int k = 0; k < N; ++k) y.Set(k, v[k] * rstd * w[k]);
    y.Store(static_cast<T*>(args.y) + row * hidden + h);
  }
}

// dx = rstd·(g - x·rstd²·mean(g·x)) + dres with g = dy·w. Each thread handles the same columns of
// every row and accumulates their dw in dynamic shared memory, f[H].
template <typename T, int N>
TROUPE_KERNEL_OF(kHeldGradThreads, 2)
void RmsNormGradKernel(RmsNormGradArgs args) {
  TROUPE_SHARED float shared[2][kWarp + 1];  // used alternately by successive rows
  auto* const dw = reinterpret_cast<float*>(DynamicShared());
  const int64_t hidden = args.hidden;
  const int64_t first = int64_t{ThreadIndex()} * N, step = int64_t{BlockThreads()} * N;
  for (int64_t h = first; h < hidden; h += step) {
    for (int k = 0; k < N; ++k) dw[h + k] = 0;
  }
  int turn = 0;
  for (int64_t row = BlockIndex().x; row < args.rows; row += Blocks().x) {
    const T* dy = static_cast<const T*>(args.dy) + row * hidden;
    const T* x = static_cast<const T*>(args.x) + row * hidden;
    const float rstd = args.rstd[row];
    float dot = 0;
    for (int64_t h = first; h < hidden; h += step) {
      const auto dy_h = Pack<T, N>::Load(dy + h);
      const auto x_h = Pack<T, N>::Load(x + h);
      const auto w = Pack<float, N>::Load(args.w + h);
      for (int k = 0; k < N; ++k) {
        const float product = dy_h[k] * x_h[k];
        dot += product * w[k];
        dw[h + k] += product * rstd;
      }
    }
    const float shift = rstd * rstd * BlockSum(dot, shared[turn]) / static_cast<float>(hidden);
    turn ^= 1;
    for (int64_t h = first; h < hidden; h += step) {
      const auto dy_h = Pack<T, N>::Load(dy + h);
      const auto x_h = Pack<T, N>::Load(x + h);
      const auto w = Pack<float, N>::Load(args.w + h);
      Pack<T, N> dres{};
      if (args.dres != nullptr) {
        dres = Pack<T, N>::Load(static_cast<const T*>(args.dres) + row * hidden + h);
      }
      Pack<T, N> dx;
      for (int k = 0; k < N; ++k) {
        dx.Set(k, rstd * (dy_h[k] * w[k] - x_h[k] * shift) + (args.dres != nullptr ? dres[k] : 0));
      }
      dx.Store(static_cast<T*>(args.dx) + row * hidden + h);
    }
  }
  for (int64_t h = first; h < hidden; h += step) {
    for (int k = 0; k < N; ++k) args.partial[BlockIndex().x * hidden + h + k] = dw[h + k];
  }
}

// The same for rows that fit into the registers of a block's threads.
template <typename T, int N>
TROUPE_KERNEL_OF(kHeldGradThreads, kHeldGradBlocks)
void RmsNormGradHeldKernel(RmsNormGradArgs args) {
  TROUPE_SHARED float shared[2][kWarp + 1];  // used alternately, as above
  struct Row {
    Pack<T, N> dy{}, x{}, dres{};
    float rstd = 0;
  };
  const int64_t hidden = args.hidden, h = int64_t{ThreadIndex()} * N;
  const bool holds = h < hidden;
  const auto load = [&](int64_t row) {
    Row loaded;
    if (row >= args.rows) return loaded;
    loaded.rstd = args.rstd[row];
    if (!holds) return loaded;
    const int64_t at = row * hidden + h;
    loaded.dy = Pack<T, N>::Load(static_cast<const T*>(args.dy) + at);
    loaded.x = Pack<T, N>::Load(static_cast<const T*>(args.x) + at);
    if (args.dres != nullptr) loaded.dres = Pack<T, N>::Load(static_cast<const T*>(args.dres) + at);
    return loaded;
  };
  Pack<float, N> w{}, dw{};
  if (holds) w = Pack<float, N>::Load(args.w + h);
  int turn = 0;
  Row next = load(BlockIndex().x);
  TROUPE_NO_UNROLL
  for (int64_t row = BlockIndex().x; row < args.rows; row += Blocks().x) {
    const Row own = next;
    next = load(row + Blocks().x);
    float dot = 0;
    for (int k = 0; k < N; ++k) {
      const float product = own.dy[k] * own.x[k];
      dot += product * w[k];
      dw.values[k] += product * own.rstd;
    }
    const float shift =
        own.rstd * own.rstd * BlockSum(dot, shared[turn]) / static_cast<float>(hidden);
    turn ^= 1;
    if (!holds) continue;
    Pack<T, N> dx;
    for (int k = 0; k < N; ++k) {
      dx.Set(k, own.rstd * (own.dy[k] * w[k] - own.x[k] * shift) + own.dres[k]);
    }
    dx.Store(static_cast<T*>(args.dx) + row * hidden + h);
  }
  if (holds) dw.Store(args.partial + BlockIndex().x * hidden + h);
}

// One lane per column; the warps' sums are added in order.
TROUPE_KERNEL_OF(kFinishRows* kWarp, 1) void RmsNormGradFinishKernel(RmsNormGradArgs args) {
  TROUPE_SHARED float sums[kFinishRows][kWarp];
  const int64_t h = int64_t{BlockIndex().x} * kWarp + Lane();
  const int64_t blocks = GradBlocks(args.rows, args.hidden);
  float sum = 0;
  if (h < args.hidden) {
    for (int64_t b = Warp(); b < blocks; b += kFinishRows) sum += args.partial[b * args.hidden + h];
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
  if (!Packs(args.hidden, sizeof(T), {args.a, args.b, args.w, args.sum, args.y})) {
    return MakeLaunch("rms_norm", &RmsNormKernel<T, 1>, BlocksFor(args.rows, args.hidden), args);
  }
  const int64_t packs = args.hidden / kMany;
  return packs <= kHeldThreads
             ? MakeLaunch("rms_norm", &RmsNormHeldKernel<T, kMany>,
                          BlocksFor(args.rows, packs, kHeldThreads), args)
             : MakeLaunch("rms_norm", &RmsNormKernel<T, kMany>, BlocksFor(args.rows, packs), args);
}

template <typename T>
KernelLaunch RmsNormGradOf(const RmsNormGradArgs& args) {
  constexpr int kMany = kPack<T>;
  const bool packed =
      Packs(args.hidden, sizeof(T), {args.dy, args.x, args.w, args.dres, args.dx, args.partial});
  const int64_t packs = packed ? args.hidden / kMany : args.hidden;
  LaunchShape shape = BlocksFor(GradBlocks(args.rows, args.hidden), packs, kHeldGradThreads);
  if (packed && packs <= kHeldGradThreads) {
    return MakeLaunch("rms_norm_grad", &RmsNormGradHeldKernel<T, kMany>, shape, args);
  }
  shape.shared_bytes = static_cast<size_t>(args.hidden) * sizeof(float);
  return packed ? MakeLaunch("rms_norm_grad", &RmsNormGradKernel<T, kMany>, shape, args)
                : MakeLaunch("rms_norm_grad", &RmsNormGradKernel<T, 1>, shape, args);
}

}  // namespace

int64_t RmsNormGradBlocks(int64_t rows, int64_t hidden) { return GradBlocks(rows, hidden); }

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
                    args);
}

}  // namespace troupe::kernels::cuda
