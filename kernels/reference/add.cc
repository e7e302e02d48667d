#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {

void Add(const Operation& operation) {
  const int64_t count = operation.Output(0).elements();
  for (int64_t i = 0; i < count; ++i) {
    operation.outputs[0][i] = operation.inputs[0][i] + operation.inputs[1][i];
  }
}

}  // namespace troupe::kernels::reference
