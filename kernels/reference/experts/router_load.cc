// load[b,e] = number of times this rank's rows of sample b choose e; load[b,E] = Σ of their
// weights.
#include <algorithm>

#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {

Status RouterLoad(const Operation& operation) {
  const auto& router = operation.attributes<model::RouterAttributes>();
  const int64_t rows = operation.Extent(0, 0), k = operation.Extent(0, 1);
  const int64_t lanes = router.experts + 1;
  std::fill_n(operation.outputs[0], operation.Output(0).elements(), 0.0);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t row = router.first_row + r;
    double* load = operation.outputs[0] + row / router.local_tokens * lanes;
    for (int64_t j = 0; j < k; ++j) load[operation.Count(0, r * k + j)] += 1;
    load[router.experts] += operation.inputs[1][row];
  }
  return OkStatus();
}

}  // namespace troupe::kernels::reference
