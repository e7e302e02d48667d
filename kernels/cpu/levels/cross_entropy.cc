// Σ weight·nll in float64 and the gradient of the statistics: one number per row.
#include <cmath>

#include "kernels/cpu/level_target.h"

namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE {

// Uses one thread, so that the sum is in row order.
void CrossEntropy(const CrossEntropyArgs& args, int thread, int) {
  if (thread != 0) return;
  double loss = 0;
  double weight_sum = 0;
  for (int64_t r = 0; r < args.rows; ++r) {
    const double weight = args.weights[r];
    weight_sum += weight;
    loss += weight * (__builtin_log(static_cast<double>(args.sums[r])) + args.global_max[r] -
                      args.sums[args.rows + r]);
  }
  args.totals[0] = (args.accumulate ? args.totals[0] : 0.0) + loss;
  args.totals[1] = (args.accumulate ? args.totals[1] : 0.0) + weight_sum;
}

void CrossEntropyGrad(const CrossEntropyGradArgs& args, int thread, int threads) {
  const Part part = PartOf(args.rows, thread, threads, kLanes);
  for (int64_t r = part.begin; r < part.end; ++r) {
    args.dsums[r] = args.weights[r] / args.sums[r];
    if (args.global_max != nullptr) {
      const double lse = __builtin_log(static_cast<double>(args.sums[r])) + args.global_max[r];
      args.dsums[r] *= static_cast<float>(1 + 2 * args.z_loss_coef * lse);
    }
    args.dsums[args.rows + r] = -args.weights[r];
  }
}

}  // namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE

#include "kernels/cpu/level_end.h"
