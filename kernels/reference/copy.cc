#include <algorithm>

#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {

void Copy(const Operation& operation) {
  for (size_t i = 0; i < operation.inputs.size(); ++i) {
    if (operation.inputs[i] == operation.outputs[i]) continue;
    std::copy_n(operation.inputs[i], operation.Input(static_cast<int>(i)).elements(),
                operation.outputs[i]);
  }
}

}  // namespace troupe::kernels::reference
