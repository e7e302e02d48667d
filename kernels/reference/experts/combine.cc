// y[r] = Σ_j weights[r,j]·x[slots[r,j]] and its gradients.
#include <algorithm>

#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {

Status Combine(const Operation& operation) {
  const int64_t rows = operation.Extent(1, 0), k = operation.Extent(1, 1);
  const int64_t hidden = operation.Extent(0, 1);
  std::fill_n(operation.outputs[0], rows * hidden, 0.0);
  for (int64_t i = 0; i < rows * k; ++i) {
    const int64_t slot = operation.Count(1, i);
    if (slot < 0) continue;
    for (int64_t h = 0; h < hidden; ++h) {
      operation.outputs[0][i / k * hidden + h] +=
          operation.inputs[2][i] * operation.inputs[0][slot * hidden + h];
    }
  }
  return OkStatus();
}

Status CombineGrad(const Operation& operation) {
  const int64_t rows = operation.Extent(2, 0), k = operation.Extent(2, 1);
  const int64_t hidden = operation.Extent(0, 1);
  for (int64_t i = 0; i < rows * k; ++i) {
    const int64_t slot = operation.Count(2, i);
    operation.outputs[1][i] = 0;
    if (slot < 0) continue;
    const double* dy = operation.inputs[0] + i / k * hidden;
    for (int64_t h = 0; h < hidden; ++h) {
      operation.outputs[0][slot * hidden + h] = operation.inputs[3][i] * dy[h];
      operation.outputs[1][i] += operation.inputs[1][slot * hidden + h] * dy[h];
    }
  }
  return OkStatus();
}

}  // namespace troupe::kernels::reference
