#include <algorithm>

#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {

Status Copy(const Operation& operation) {
  for (size_t i = 0; i < operation.inputs.size(); ++i) {
    if (operation.inputs[i] == operation.outputs[i]) continue;
    std::copy_n(operation.inputs[i], operation.Input(static_cast<int>(i)).elements(),
                operation.outputs[i]);
  }
  return OkStatus();
}

// The backend rounds values when they are read, so a conversion is a copy.
Status Cast(const Operation& operation) { return Copy(operation); }

}  // namespace troupe::kernels::reference
