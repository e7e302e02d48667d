// Σ weight·nll in float64, by one block in a fixed order, and the gradient of the statistics, one
// thread per row.
#include "kernels/cuda/device_code/numbers.h"
#include "kernels/cuda/device_code/shapes.h"
#include "kernels/cuda/kernels/kernels.h"

namespace troupe::kernels::cuda {
namespace {

constexpr int kThreads = 1024;

TROUPE_KERNEL_OF(kThreads, 1) void CrossEntropyKernel(CrossEntropyArgs args) {
  TROUPE_SHARED double shared[2][kThreads];
  const unsigned own = ThreadIndex();
  double loss = 0, weight_sum = 0;
  for (int64_t r = own; r < args.rows; r += kThreads) {
    const double weight = args.weights[r];
    weight_sum += weight;
    loss += weight * (log(static_cast<double>(args.sums[r])) + args.global_max[r] -
                      args.sums[args.rows + r]);
  }
  shared[0][own] = loss;
  shared[1][own] = weight_sum;
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    SyncBlock();
    if (own >= half) continue;
    for (auto& sums : shared) sums[own] += sums[own + half];
  }
  if (own != 0) return;
  for (int i = 0; i < 2; ++i) {
    args.totals[i] = (args.accumulate ? args.totals[i] : 0.0) + shared[i][0];
  }
}

TROUPE_KERNEL void CrossEntropyGradKernel(CrossEntropyGradArgs args) {
  const int64_t r = int64_t{BlockIndex().x} * BlockThreads() + ThreadIndex();
  if (r >= args.rows) return;
  float dsum = args.weights[r] / args.sums[r];
  if (args.global_max != nullptr) {
    const double lse = log(static_cast<double>(args.sums[r])) + args.global_max[r];
    dsum *= static_cast<float>(1 + 2 * args.z_loss_coef * lse);
  }
  args.dsums[r] = dsum;
  args.dsums[args.rows + r] = -args.weights[r];
}

}  // namespace

KernelLaunch CrossEntropy(const CrossEntropyArgs& args) {
  return MakeLaunch("cross_entropy", &CrossEntropyKernel, {.threads = kThreads}, args);
}

KernelLaunch CrossEntropyGrad(const CrossEntropyGradArgs& args) {
  return MakeLaunch("cross_entropy_grad", &CrossEntropyGradKernel, ThreadsFor(args.rows), args);
}

}  // namespace troupe::kernels::cuda
