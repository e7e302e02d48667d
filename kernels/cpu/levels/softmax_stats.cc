// Statistics of a slice of the vocabulary and their gradient, separate and fused. All are
// memory-bound. The statistics process a row in blocks that stay in cache and rescale the running
// sum to the running maximum, so that each logit is read once; the gradient reads and writes each
// logit once.
#include "kernels/cpu/level_target.h"

namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE {

constexpr int64_t kBlock = 2048;

template <typename T>
TROUPE_INLINE float BlockMax(const T* logits, int64_t count) {
  const F32 lowest = Set(-__builtin_inff());
  F32 largest[2] = {lowest, lowest};
  int64_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    largest[0] = Max(Load(logits + i), largest[0]);
    largest[1] = Max(Load(logits + i + kLanes), largest[1]);
  }
  for (; i + kLanes <= count; i += kLanes) largest[0] = Max(Load(logits + i), largest[0]);
  if (i < count) {
    const F32 tail = LoadPartial(logits + i, count - i, logits[i]);
    largest[1] = Max(tail, largest[1]);
  }
  return ReduceMax(Max(largest[0], largest[1]));
}

template <typename T>
TROUPE_INLINE float BlockSum(const T* logits, int64_t count, float max) {
  F32 sums[2] = {};
  int64_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    sums[0] += Exp(Load(logits + i) - max);
    sums[1] += Exp(Load(logits + i + kLanes) - max);
  }
  for (; i + kLanes <= count; i += kLanes) sums[0] += Exp(Load(logits + i) - max);
  if (i < count) {
    const F32 tail = Exp(LoadPartial(logits + i, count - i) - max);
    const I32 tail_count = Iota() - static_cast<int32_t>(count - i);
    sums[1] += tail_count < 0 ? tail : F32{};
  }
  return ReduceAdd(sums[0] + sums[1]);
}

struct RowStats {
  float max, sum, at_target;
};

template <typename T>
TROUPE_INLINE RowStats StatsOf(const T* logits, int64_t vocabulary, int64_t target) {
  float max = -__builtin_inff();
  float total = 0.0f;
  for (int64_t v = 0; v < vocabulary; v += kBlock) {
    const int64_t count = vocabulary - v < kBlock ? vocabulary - v : kBlock;
    const float block_max = BlockMax(logits + v, count);
    if (block_max > max) {
      total *= Exp(Set(max - block_max))[0];
      max = block_max;
    }
    total += BlockSum(logits + v, count, max);
  }
  const bool here = target >= 0 && target < vocabulary;
  return {max, total, here ? LoadPartial(logits + target, 1)[0] : 0.0f};
}

// gradient = factor · exp(l - max) + summand·[target]. May be in place.
template <typename T>
TROUPE_INLINE void GradientOf(const T* logits, T* gradient, int64_t vocabulary, int64_t target,
                              float max, float factor, float summand) {
  const bool here = target >= 0 && target < vocabulary;
  // Read before the row is overwritten, because gradient may alias logits.
  const F32 at_target = here ? LoadPartial(logits + target, 1) : F32{};
  for (int64_t v = 0; v < vocabulary; v += kLanes) {
    const int64_t count = vocabulary - v;
    StoreUpTo(gradient + v, count, factor * Exp(LoadUpTo(logits + v, count) - max));
  }
  if (here) StorePartial(gradient + target, 1, factor * Exp(at_target - max) + summand);
}

template <typename T>
void SoftmaxStats(const SoftmaxStatsArgs& args, int thread, int threads) {
  const Part part = PartOf(args.rows, thread, threads);
  for (int64_t r = part.begin; r < part.end; ++r) {
    const T* logits = static_cast<const T*>(args.logits) + r * args.vocabulary;
    const RowStats stats = StatsOf(logits, args.vocabulary, args.targets[r] - args.vocab_offset);
    args.max[r] = stats.max;
    args.sums[r] = stats.sum;
    args.sums[args.rows + r] = stats.at_target;
  }
}

template <typename T>
void SoftmaxStatsGrad(const SoftmaxStatsGradArgs& args, int thread, int threads) {
  const Part part = PartOf(args.rows, thread, threads);
  for (int64_t r = part.begin; r < part.end; ++r) {
    const T* logits = static_cast<const T*>(args.logits) + r * args.vocabulary;
    T* gradient = static_cast<T*>(args.dlogits) + r * args.vocabulary;
    GradientOf(logits, gradient, args.vocabulary, args.targets[r] - args.vocab_offset, args.max[r],
               args.dsums[r], args.dsums[args.rows + r]);
  }
}

// The second pass reads the row from the core's cache.
template <typename T>
void SoftmaxStatsAndGrad(const SoftmaxStatsAndGradArgs& args, int thread, int threads) {
  const Part part = PartOf(args.rows, thread, threads);
  for (int64_t r = part.begin; r < part.end; ++r) {
    const T* logits = static_cast<const T*>(args.logits) + r * args.vocabulary;
    T* gradient = static_cast<T*>(args.dlogits) + r * args.vocabulary;
    const RowStats stats = StatsOf(logits, args.vocabulary, args.targets[r]);
    args.max[r] = stats.max;
    args.sums[r] = stats.sum;
    args.sums[args.rows + r] = stats.at_target;
    float factor = args.weights[r] / stats.sum;
    if (args.z_loss_coef > 0) {
      const double lse = __builtin_log(static_cast<double>(stats.sum)) + stats.max;
      factor *= static_cast<float>(1 + 2 * args.z_loss_coef * lse);
    }
    GradientOf(logits, gradient, args.vocabulary, args.targets[r], stats.max, factor,
               -args.weights[r]);
  }
}

// y = {sums0 · exp(max - global_max), sums1}. It is linear in sums, so its gradient applies the
// same map to dsums.
void SoftmaxRescale(const SoftmaxRescaleArgs& args, int thread, int threads) {
  const Part part = PartOf(args.rows, thread, threads, kLanes);
  for (int64_t r = part.begin; r < part.end; r += kLanes) {
    const int64_t count = part.end - r;
    const F32 factor = Exp(LoadUpTo(args.max + r, count) - LoadUpTo(args.global_max + r, count));
    StoreUpTo(args.y + r, count, LoadUpTo(args.sums + r, count) * factor);
    StoreUpTo(args.y + args.rows + r, count, LoadUpTo(args.sums + args.rows + r, count));
  }
}

template void SoftmaxStats<float>(const SoftmaxStatsArgs&, int, int);
template void SoftmaxStats<BFloat16>(const SoftmaxStatsArgs&, int, int);
template void SoftmaxStatsGrad<float>(const SoftmaxStatsGradArgs&, int, int);
template void SoftmaxStatsGrad<BFloat16>(const SoftmaxStatsGradArgs&, int, int);
template void SoftmaxStatsAndGrad<float>(const SoftmaxStatsAndGradArgs&, int, int);
template void SoftmaxStatsAndGrad<BFloat16>(const SoftmaxStatsAndGradArgs&, int, int);

}  // namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE

#include "kernels/cpu/level_end.h"
