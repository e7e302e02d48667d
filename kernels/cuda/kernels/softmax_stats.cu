// Statistics of a slice of the vocabulary and their gradient, separate and fused. Memory-bound: the
// statistics read each logit once, and every thread rescales its running sum to its running
// maximum; the gradient reads and writes each logit once. Fused, they read each logit once, because
// a block caches its row in shared memory (kernels/cuda/device_code/cached_row.h).
#include "kernels/cuda/device_code/cached_row.h"
#include "kernels/cuda/device_code/numbers.h"
#include "kernels/cuda/device_code/shapes.h"
#include "kernels/cuda/kernels/kernels.h"

namespace troupe::kernels::cuda {
namespace {

// The maximum of some logits and their Σ exp(l - max).
struct Stats {
  float max = -INFINITY;
  float sum = 0;
};

template <typename T>
TROUPE_DEVICE Stats Merge(Stats a, Stats b) {
  const float max = fmaxf(a.max, b.max);
  if (max == -INFINITY) {
    // For no logits, or only -inf; fmaxf ignores a NaN, which must not be lost.
    return a.max == b.max ? Stats{max, 0.0f} : Stats{NAN, NAN};
  }
  return {max, a.sum * Exp<T>(a.max - max) + b.sum * Exp<T>(b.max - max)};
}

template <typename T>
TROUPE_DEVICE Stats MergeWarp(Stats stats) {
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) {
    stats = Merge<T>(stats, {ShuffleXor(stats.max, lanes), ShuffleXor(stats.sum, lanes)});
  }
  return stats;
}

// Adds N adjacent logits to the statistics.
template <typename T, int N>
TROUPE_DEVICE Stats With(Stats stats, const Pack<T, N>& l) {
  Stats some{l[0], 0.0f};
  for (int k = 1; k < N; ++k) some.max = fmaxf(some.max, l[k]);
  for (int k = 0; k < N; ++k) some.sum += Exp<T>(l[k] - some.max);
  return Merge<T>(stats, some);
}

// Merges the statistics of all threads of the block; the lanes of warp 0 get the result. `shared`
// has kWarp elements.
template <typename T>
TROUPE_DEVICE Stats MergeBlock(Stats stats, Stats* shared) {
  stats = MergeWarp<T>(stats);
  if (Lane() == 0) shared[Warp()] = stats;
  SyncBlock();
  if (Warp() != 0) return {};
  const int warps = static_cast<int>(BlockThreads()) / kWarp;
  return MergeWarp<T>(Lane() < warps ? shared[Lane()] : Stats{});
}

template <typename T, int N>
TROUPE_KERNEL void SoftmaxStatsKernel(SoftmaxStatsArgs args) {
  TROUPE_SHARED Stats shared[kWarp];
  const int64_t row = BlockIndex().x;
  const T* logits = static_cast<const T*>(args.logits) + row * args.vocabulary;
  Stats own;
  for (int64_t v = int64_t{ThreadIndex()} * N; v < args.vocabulary;
       v += int64_t{BlockThreads()} * N) {
    own = With(own, Pack<T, N>::Load(logits + v));
  }
  const Stats all = MergeBlock<T>(own, shared);
  if (ThreadIndex() != 0) return;
  args.max[row] = all.max;
  args.sums[row] = all.sum;
  const int64_t target = args.targets[row] - args.vocab_offset;
  args.sums[args.rows + row] =
      target >= 0 && target < args.vocabulary ? Widen(logits[target]) : 0.0f;
}

template <typename T, int N>
TROUPE_KERNEL void SoftmaxStatsGradKernel(SoftmaxStatsGradArgs args) {
  const int64_t row = BlockIndex().x;
  const T* logits = static_cast<const T*>(args.logits) + row * args.vocabulary;
  T* gradient = static_cast<T*>(args.dlogits) + row * args.vocabulary;
  const float max = args.max[row], factor = args.dsums[row];
  const float at_target = args.dsums[args.rows + row];
  const int64_t target = args.targets[row] - args.vocab_offset;
  for (int64_t v = int64_t{ThreadIndex()} * N; v < args.vocabulary;
       v += int64_t{BlockThreads()} * N) {
    const auto l = Pack<T, N>::Load(logits + v);
    Pack<T, N> d;
    for (int k = 0; k < N; ++k) {
      d.Set(k, factor * Exp<T>(l[k] - max) + (v + k == target ? at_target : 0.0f));
    }
    d.Store(gradient + v);
  }
}

struct CachedRowArgs {
  SoftmaxStatsAndGradArgs all;
  int64_t kept;  // elements of a row that a block caches, in whole packs
};

// Each thread writes the gradient where it has read logits, so that the two may share memory.
template <typename T, int N>
TROUPE_KERNEL_OF(kMostThreadsOfRow, 1)
void SoftmaxStatsAndGradKernel(CachedRowArgs args) {
  TROUPE_SHARED Stats shared[kWarp];
  TROUPE_SHARED float max_and_factor[2];
  constexpr int kAtOnce = 4;  // so that enough loads are in flight
  const SoftmaxStatsAndGradArgs& all = args.all;
  const int64_t row = BlockIndex().x, target = all.targets[row];
  const T* logits = static_cast<const T*>(all.logits) + row * all.vocabulary;
  T* const gradient = static_cast<T*>(all.dlogits) + row * all.vocabulary;
  T* const kept = reinterpret_cast<T*>(DynamicShared());
  const int64_t first = int64_t{ThreadIndex()} * N, stride = int64_t{BlockThreads()} * N;
  const float weight = all.weights[row];
  if (ThreadIndex() == 0) {  // before the logit is overwritten
    all.sums[all.rows + row] =
        target >= 0 && target < all.vocabulary ? Widen(logits[target]) : 0.0f;
  }
  Stats own;
  int64_t v = first;
  for (; v + (kAtOnce - 1) * stride < all.vocabulary; v += kAtOnce * stride) {
    Pack<T, N> l[kAtOnce];
    TROUPE_UNROLL
    for (int k = 0; k < kAtOnce; ++k) l[k] = Pack<T, N>::Load(logits + v + k * stride);
    TROUPE_UNROLL
    for (int k = 0; k < kAtOnce; ++k) {
      if (v + k * stride < args.kept) l[k].Store(kept + v + k * stride);
      own = With(own, l[k]);
    }
  }
  for (; v < all.vocabulary; v += stride) {
    const auto l = Pack<T, N>::Load(logits + v);
    if (v < args.kept) l.Store(kept + v);
    own = With(own, l);
  }
  const Stats stats = MergeBlock<T>(own, shared);
  if (ThreadIndex() == 0) {
    all.max[row] = stats.max;
    all.sums[row] = stats.sum;
    float factor = weight / stats.sum;
    if (all.z_loss_coef > 0) {
      const double lse = log(static_cast<double>(stats.sum)) + stats.max;
      factor *= static_cast<float>(1 + 2 * all.z_loss_coef * lse);
    }
    max_and_factor[0] = stats.max;
    max_and_factor[1] = factor;
  }
  SyncBlock();
  const float max = max_and_factor[0], factor = max_and_factor[1];
  for (v = first; v < all.vocabulary; v += stride) {
    const auto l = Pack<T, N>::Load(v < args.kept ? kept + v : logits + v);
    Pack<T, N> d;
    for (int k = 0; k < N; ++k) {
      d.Set(k, factor * Exp<T>(l[k] - max) - (v + k == target ? weight : 0.0f));
    }
    d.Store(gradient + v);
  }
}

// y = {sums0 · exp(max - global_max), sums1}. It is linear in sums, so its gradient applies the
// same map to dsums.
TROUPE_KERNEL void SoftmaxRescaleKernel(SoftmaxRescaleArgs args) {
  const int64_t row = int64_t{BlockIndex().x} * BlockThreads() + ThreadIndex();
  if (row >= args.rows) return;
  args.y[row] = args.sums[row] * expf(args.max[row] - args.global_max[row]);
  args.y[args.rows + row] = args.sums[args.rows + row];
}

template <typename T>
KernelLaunch SoftmaxStatsOf(const SoftmaxStatsArgs& args) {
  constexpr int kMany = kPack<T>;
  return Packs(args.vocabulary, sizeof(T), {args.logits})
             ? MakeLaunch("softmax_stats", &SoftmaxStatsKernel<T, kMany>,
                          BlocksFor(args.rows, args.vocabulary / kMany), args)
             : MakeLaunch("softmax_stats", &SoftmaxStatsKernel<T, 1>,
                          BlocksFor(args.rows, args.vocabulary), args);
}

template <typename T>
KernelLaunch SoftmaxStatsGradOf(const SoftmaxStatsGradArgs& args) {
  constexpr int kMany = kPack<T>;
  return Packs(args.vocabulary, sizeof(T), {args.logits, args.dlogits})
             ? MakeLaunch("softmax_stats_grad", &SoftmaxStatsGradKernel<T, kMany>,
                          BlocksFor(args.rows, args.vocabulary / kMany), args)
             : MakeLaunch("softmax_stats_grad", &SoftmaxStatsGradKernel<T, 1>,
                          BlocksFor(args.rows, args.vocabulary), args);
}

template <typename T, int N>
KernelLaunch SoftmaxStatsAndGradBy(const SoftmaxStatsAndGradArgs& args) {
  const int64_t kept = CachedOfRow(args.vocabulary, N, sizeof(T));
  return MakeLaunch("softmax_stats_and_grad", &SoftmaxStatsAndGradKernel<T, N>,
                    CachedRowShape(args.rows, args.vocabulary / N, kept * sizeof(T)),
                    CachedRowArgs{args, kept});
}

template <typename T>
KernelLaunch SoftmaxStatsAndGradOf(const SoftmaxStatsAndGradArgs& args) {
  return Packs(args.vocabulary, sizeof(T), {args.logits, args.dlogits})
             ? SoftmaxStatsAndGradBy<T, kPack<T>>(args)
             : SoftmaxStatsAndGradBy<T, 1>(args);
}

}  // namespace

KernelLaunch SoftmaxStats(const SoftmaxStatsArgs& args, bool bfloat16) {
  return bfloat16 ? SoftmaxStatsOf<BFloat16>(args) : SoftmaxStatsOf<float>(args);
}

KernelLaunch SoftmaxStatsGrad(const SoftmaxStatsGradArgs& args, bool bfloat16) {
  return bfloat16 ? SoftmaxStatsGradOf<BFloat16>(args) : SoftmaxStatsGradOf<float>(args);
}

KernelLaunch SoftmaxStatsAndGrad(const SoftmaxStatsAndGradArgs& args, bool bfloat16) {
  return bfloat16 ? SoftmaxStatsAndGradOf<BFloat16>(args) : SoftmaxStatsAndGradOf<float>(args);
}

KernelLaunch SoftmaxRescale(const SoftmaxRescaleArgs& args) {
  return MakeLaunch("softmax_rescale", &SoftmaxRescaleKernel, ThreadsFor(args.rows), args);
}

}  // namespace troupe::kernels::cuda
