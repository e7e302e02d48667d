// bias_e += rate · sign(mean - routed_e).
#include "kernels/backend/update_decision.h"
#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {

Status RouterBias(const Operation& operation) {
  if (!DecideUpdate(operation.inputs[0], 0).apply) return OkStatus();
  const double rate = operation.attributes<model::RouterBiasAttributes>().rate;
  const int64_t experts = operation.Extent(2, 0);
  const double* routed = operation.inputs[1] + model::kRouterLanes;
  double sum = 0;
  for (int64_t e = 0; e < experts; ++e) sum += routed[e];
  for (int64_t e = 0; e < experts; ++e) {
    // Compares whole numbers, so that equality with the mean is exact.
    const double all = routed[e] * static_cast<double>(experts);
    operation.inputs[2][e] += rate * static_cast<double>((sum > all) - (sum < all));
  }
  return OkStatus();
}

}  // namespace troupe::kernels::reference
