// y = silu(gate) · up; a row of gu is gate[F] | up[F].
#include <cmath>

#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {

Status SwiGlu(const Operation& operation) {
  const int64_t rows =
      operation.inputs.size() > 1 ? operation.SumOfCounts(1) : operation.Extent(0, 0);
  const int64_t ffn = operation.Extent(0, 1) / 2;
  for (int64_t r = 0; r < rows; ++r) {
    const double* gate = operation.inputs[0] + r * 2 * ffn;
    for (int64_t f = 0; f < ffn; ++f) {
      operation.outputs[0][r * ffn + f] = gate[f] / (1.0 + std::exp(-gate[f])) * gate[ffn + f];
    }
  }
  return OkStatus();
}

Status SwiGluGrad(const Operation& operation) {
  const int64_t rows =
      operation.inputs.size() > 2 ? operation.SumOfCounts(2) : operation.Extent(1, 0);
  const int64_t ffn = operation.Extent(1, 1) / 2;
  for (int64_t r = 0; r < rows; ++r) {
    const double* gate = operation.inputs[1] + r * 2 * ffn;
    double* gradient = operation.outputs[0] + r * 2 * ffn;
    for (int64_t f = 0; f < ffn; ++f) {
      const double dy = operation.inputs[0][r * ffn + f];
      const double g = gate[f];
      const double up = gate[ffn + f];
      const double sigmoid = 1.0 / (1.0 + std::exp(-g));
      gradient[f] = dy * up * sigmoid * (1.0 + g * (1.0 - sigmoid));
      gradient[ffn + f] = dy * g * sigmoid;
    }
  }
  return OkStatus();
}

}  // namespace troupe::kernels::reference
