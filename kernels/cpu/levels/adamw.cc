// AdamW (Loshchilov and Hutter 2019; eps is added to the bias-corrected root, as in PyTorch) and
// the sum of squares of gradients. Both read every element once and are memory-bound.
#include "kernels/cpu/level_target.h"

namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE {

void AdamW(const AdamWArgs& args, const UpdateArgs& of, int thread, int threads) {
  const Part part = PartOf(of.count, thread, threads, 64);
  float* const exp_avg = of.states[0];
  float* const exp_avg_sq = of.states[1];
  BFloat16* copy = static_cast<BFloat16*>(of.copy);
  const float decay = of.decays ? args.decay : 1.0f;
  for (int64_t i = part.begin; i < part.end; i += kLanes) {
    const int64_t count = part.end - i;
    const F32 g = LoadUpTo(of.gradient + i, count) * args.gradient_scale;
    const F32 mean = LoadUpTo(exp_avg + i, count) * args.beta1 + g * (1.0f - args.beta1);
    const F32 square = LoadUpTo(exp_avg_sq + i, count) * args.beta2 + g * g * (1.0f - args.beta2);
    StoreUpTo(exp_avg + i, count, mean);
    StoreUpTo(exp_avg_sq + i, count, square);
    const F32 root = Sqrt(square) * args.inverse_correction + args.eps;
    const F32 parameter = LoadUpTo(of.parameter + i, count) * decay - mean * args.step_size / root;
    StoreUpTo(of.parameter + i, count, parameter);
    if (copy != nullptr) StoreUpTo(copy + i, count, parameter);
  }
}

// Accumulates in float64 lanes, so that the norm of a billion elements is accurate to the last
// digits of float32.
void SumOfSquares(const SumOfSquaresArgs& args, int thread, int threads) {
  typedef float Half __attribute__((vector_size(kLanes * 2)));
  const Part part = PartOf(args.count, thread, threads, 64);
  F64 sums[4] = {};
  int64_t i = part.begin;
  constexpr int64_t kStep = int64_t{4} * (kLanes / 2);
  for (; i + kStep <= part.end; i += kStep) {
    for (int64_t k = 0; k < 4; ++k) {
      Half half;
      std::memcpy(&half, args.x + i + k * (kLanes / 2), sizeof(half));
      const F64 wide = __builtin_convertvector(half, F64);
      sums[k] += wide * wide;
    }
  }
  double total = 0;
  for (; i < part.end; ++i) total += static_cast<double>(args.x[i]) * args.x[i];
  const F64 sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  for (int lane = 0; lane < kLanes / 2; ++lane) total += sum[lane];
  args.partial[thread] += total;
}

}  // namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE

#include "kernels/cpu/level_end.h"
