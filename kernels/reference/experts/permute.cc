// y[slots[r,j]] = x[r]; the gradient sums the rows back.
#include <algorithm>

#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {

Status Permute(const Operation& operation) {
  const int64_t rows = operation.Extent(1, 0), k = operation.Extent(1, 1);
  const int64_t hidden = operation.Extent(0, 1);
  for (int64_t i = 0; i < rows * k; ++i) {
    const int64_t slot = operation.Count(1, i);
    if (slot < 0) continue;
    std::copy_n(operation.inputs[0] + i / k * hidden, hidden, operation.outputs[0] + slot * hidden);
  }
  return OkStatus();
}

Status PermuteGrad(const Operation& operation) {
  const int64_t rows = operation.Extent(1, 0), k = operation.Extent(1, 1);
  const int64_t hidden = operation.Extent(0, 1);
  std::fill_n(operation.outputs[0], rows * hidden, 0.0);
  for (int64_t i = 0; i < rows * k; ++i) {
    const int64_t slot = operation.Count(1, i);
    if (slot < 0) continue;
    for (int64_t h = 0; h < hidden; ++h) {
      operation.outputs[0][i / k * hidden + h] += operation.inputs[0][slot * hidden + h];
    }
  }
  return OkStatus();
}

}  // namespace troupe::kernels::reference
