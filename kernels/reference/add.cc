#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {

Status Add(const Operation& operation) {
  const int64_t count = operation.Output(0).elements();
  for (int64_t i = 0; i < count; ++i) {
    operation.outputs[0][i] = operation.inputs[0][i] + operation.inputs[1][i];
  }
  return OkStatus();
}

Status Accumulate(const Operation& operation) {
  const int64_t count = operation.Output(0).elements();
  double* sum = operation.outputs[0];
  for (int64_t i = 0; i < count; ++i) {
    sum[i] = (operation.accumulate ? sum[i] : 0.0) + operation.inputs[0][i];
  }
  return OkStatus();
}

}  // namespace troupe::kernels::reference
