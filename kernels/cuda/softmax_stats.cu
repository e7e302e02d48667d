// Statistics of a slice of the vocabulary and their gradient. Bound by memory: the statistics read each logit once, with
// the running maximum and the running sum rescaled to it in every thread; the gradient reads and writes each once.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/numbers.h"
#include "kernels/cuda/shapes.h"

namespace troupe::kernels::cuda {
namespace {

// Σ exp(l - max) of some logits.
struct Stats {
  float max = -INFINITY;
  float sum = 0;
};

template <typename T>
TROUPE_DEVICE Stats Merge(Stats a, Stats b) {
  const float max = fmaxf(a.max, b.max);
  if (max == -INFINITY) return {max, 0.0f};  // of no logits, or of none above -inf
  return {max, a.sum * Exp<T>(a.max - max) + b.sum * Exp<T>(b.max - max)};
}

template <typename T>
TROUPE_DEVICE Stats MergeWarp(Stats stats) {
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) {
    stats = Merge<T>(stats, {ShuffleXor(stats.max, lanes), ShuffleXor(stats.sum, lanes)});
  }
  return stats;
}

template <typename T, int N>
TROUPE_KERNEL void SoftmaxStatsKernel(SoftmaxStatsArgs args) {
  TROUPE_SHARED Stats shared[kWarp];
  const int64_t row = BlockIndex().x;
  const T* logits = static_cast<const T*>(args.logits) + row * args.vocabulary;
  Stats own;
  for (int64_t v = int64_t{ThreadIndex()} * N; v < args.vocabulary;
       v += int64_t{BlockThreads()} * N) {
    const auto l = Pack<T, N>::Load(logits + v);
    Stats some{l[0], 0.0f};
    for (int k = 1; k < N; ++k) some.max = fmaxf(some.max, l[k]);
    for (int k = 0; k < N; ++k) some.sum += Exp<T>(l[k] - some.max);
    own = Merge<T>(own, some);
  }
  own = MergeWarp<T>(own);
  if (Lane() == 0) shared[Warp()] = own;
  SyncBlock();
  if (Warp() != 0) return;
  const int warps = static_cast<int>(BlockThreads()) / kWarp;
  const Stats all = MergeWarp<T>(Lane() < warps ? shared[Lane()] : Stats{});
  if (Lane() != 0) return;
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

// y = {sums0 · exp(max - global_max), sums1}; linear in sums, so that its gradient is the same map of dsums.
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

}  // namespace

KernelLaunch SoftmaxStats(const SoftmaxStatsArgs& args, bool bfloat16) {
  return bfloat16 ? SoftmaxStatsOf<BFloat16>(args) : SoftmaxStatsOf<float>(args);
}

KernelLaunch SoftmaxStatsGrad(const SoftmaxStatsGradArgs& args, bool bfloat16) {
  return bfloat16 ? SoftmaxStatsGradOf<BFloat16>(args) : SoftmaxStatsGradOf<float>(args);
}

KernelLaunch SoftmaxRescale(const SoftmaxRescaleArgs& args) {
  return MakeLaunch("softmax_rescale", &SoftmaxRescaleKernel, ThreadsFor(args.rows), args);
}

}  // namespace troupe::kernels::cuda
