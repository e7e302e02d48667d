// nll = log(sums0) + global_max - sums1; totals += {Σ weight·nll, Σ weight}. The gradient is that
// of nll + z·lse² with lse = log(sums0) + global_max.
#include <cmath>

#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {

Status CrossEntropy(const Operation& operation) {
  const int64_t rows = operation.Extent(0, 0);
  double loss = 0;
  double weight_sum = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const double weight = operation.inputs[2][r];
    weight_sum += weight;
    loss += weight * (std::log(operation.inputs[1][r]) + operation.inputs[0][r] -
                      operation.inputs[1][rows + r]);
  }
  double* totals = operation.outputs[0];
  totals[0] = (operation.accumulate ? totals[0] : 0.0) + loss;
  totals[1] = (operation.accumulate ? totals[1] : 0.0) + weight_sum;
  return OkStatus();
}

Status CrossEntropyGrad(const Operation& operation) {
  const int64_t rows = operation.Extent(1, 0);
  const double z = operation.attributes<model::LossAttributes>().z_loss_coef;
  for (int64_t r = 0; r < rows; ++r) {
    const double weight = operation.inputs[1][r];
    const double sum = operation.inputs[0][r];
    const double of_lse = z > 0 ? 2 * z * (std::log(sum) + operation.inputs[2][r]) : 0;
    operation.outputs[0][r] = weight / sum * (1 + of_lse);
    operation.outputs[0][rows + r] = -weight;
  }
  return OkStatus();
}

}  // namespace troupe::kernels::reference
