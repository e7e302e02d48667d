// bias[e] += rate · sign(mean - routed[e]), by one warp.
#include "kernels/backend/update_decision.h"
#include "kernels/cuda/device_code/numbers.h"
#include "kernels/cuda/kernels/kernels.h"

namespace troupe::kernels::cuda {
namespace {

TROUPE_KERNEL void RouterBiasKernel(RouterBiasArgs args) {
  if (!DecideUpdate(args.control, 0).apply) return;
  const double* routed = args.totals + model::kRouterLanes;
  double sum = 0;
  for (int64_t e = Lane(); e < args.experts; e += kWarp) sum += routed[e];
  sum = WarpSum(sum);
  const auto rate = static_cast<float>(args.rate);
  for (int64_t e = Lane(); e < args.experts; e += kWarp) {
    // Compares whole numbers, so that equality with the mean is exact.
    const double all = routed[e] * static_cast<double>(args.experts);
    if (sum > all) args.bias[e] += rate;
    if (sum < all) args.bias[e] -= rate;
  }
}

}  // namespace

KernelLaunch RouterBias(const RouterBiasArgs& args) {
  return MakeLaunch("router_bias", &RouterBiasKernel, {.threads = kWarp}, args);
}

}  // namespace troupe::kernels::cuda
