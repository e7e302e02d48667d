#include "kernels/backend/update_decision.h"
#include "kernels/cpu/kernels.h"

namespace troupe::kernels::cpu {

void RouterBias(const RouterBiasArgs& args, int, int) {
  if (!DecideUpdate(args.control, 0).apply) return;
  const double* routed = args.totals + model::kRouterLanes;
  double sum = 0;
  for (int64_t e = 0; e < args.experts; ++e) sum += routed[e];
  const auto rate = static_cast<float>(args.rate);
  for (int64_t e = 0; e < args.experts; ++e) {
    // Compares whole numbers, so that equality with the mean is exact.
    const double all = routed[e] * static_cast<double>(args.experts);
    if (sum > all) args.bias[e] += rate;
    if (sum < all) args.bias[e] -= rate;
  }
}

}  // namespace troupe::kernels::cpu
