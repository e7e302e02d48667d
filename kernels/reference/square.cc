#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {

Status Square(const Operation& operation) {
  const double* x = operation.inputs[0];
  const int64_t count = operation.Output(0).elements();
  for (int64_t i = 0; i < count; ++i) operation.outputs[0][i] = x[i] * x[i];
  return OkStatus();
}

Status SquareGrad(const Operation& operation) {
  const double *dy = operation.inputs[0], *x = operation.inputs[1];
  const int64_t count = operation.Output(0).elements();
  for (int64_t i = 0; i < count; ++i) operation.outputs[0][i] = 2 * x[i] * dy[i];
  return OkStatus();
}

}  // namespace troupe::kernels::reference
