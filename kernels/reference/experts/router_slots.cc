// Selects the assignments of this rank's experts among those of all ranks; each gets a row, sorted
// by expert, then token.
#include <algorithm>

#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {

Status RouterSlots(const Operation& operation) {
  const auto& router = operation.attributes<model::RouterAttributes>();
  const int64_t assignments = operation.Input(0).elements();
  double *const own = operation.outputs[0], *const counts = operation.outputs[1];
  std::fill_n(own, assignments, -1.0);
  std::fill_n(counts, router.local_experts, 0.0);
  double next = 0;
  for (int64_t e = 0; e < router.local_experts; ++e) {
    for (int64_t i = 0; i < assignments; ++i) {
      if (operation.Count(0, i) != router.first_expert + e || operation.Count(1, i) < 0) continue;
      own[i] = next++;
      counts[e] += 1;
    }
  }
  return OkStatus();
}

}  // namespace troupe::kernels::reference
