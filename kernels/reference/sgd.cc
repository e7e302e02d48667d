// Stochastic gradient descent as torch.optim.SGD, without dampening.
#include "kernels/reference/optimizer.h"

namespace troupe::kernels::reference {

Status Sgd(const Operation& operation) {
  const auto& attributes = operation.attributes<model::SgdAttributes>();
  const double learning_rate = *operation.inputs[1];
  ForEachUpdated(operation, attributes.max_norm, [&](const UpdatedElement& element) {
    double g = element.gradient;
    if (element.decays) g += attributes.weight_decay * element.parameter;
    if (attributes.momentum != 0) {
      double& buffer = *element.states[0];
      buffer = attributes.momentum * buffer + g;
      g = attributes.nesterov ? g + attributes.momentum * buffer : buffer;
    }
    return element.parameter - learning_rate * g;
  });
  return OkStatus();
}

}  // namespace troupe::kernels::reference
