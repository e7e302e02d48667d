#include "kernels/backend/update_decision.h"
#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {

Status SumOfSquares(const Operation& operation) {
  double sum = 0;
  for (size_t input = 1; input < operation.inputs.size(); ++input) {
    const double* gradient = operation.inputs[input];
    const int64_t count = operation.Input(static_cast<int>(input)).elements();
    for (int64_t i = 0; i < count; ++i) sum += gradient[i] * gradient[i];
  }
  AddSumOfSquares(operation.attributes<model::ControlAttributes>().rank, sum, operation.inputs[0]);
  return OkStatus();
}

}  // namespace troupe::kernels::reference
