// AdamW: Loshchilov and Hutter, "Decoupled weight decay regularization", 2019. As in PyTorch, eps
// is added to the bias-corrected root.
#include <cmath>

#include "kernels/reference/optimizer.h"

namespace troupe::kernels::reference {

Status AdamW(const Operation& operation) {
  const auto& attributes = operation.attributes<model::AdamWAttributes>();
  const double learning_rate = *operation.inputs[1], step = *operation.inputs[2];
  const double first_correction = 1.0 - std::pow(attributes.beta1, step);
  const double second_correction = 1.0 - std::pow(attributes.beta2, step);
  ForEachUpdated(operation, attributes.max_norm, [&](const UpdatedElement& element) {
    double& mean = *element.states[0];
    double& square = *element.states[1];
    const double decay = element.decays ? 1.0 - learning_rate * attributes.weight_decay : 1.0;
    const double g = element.gradient;
    mean = attributes.beta1 * mean + (1.0 - attributes.beta1) * g;
    square = attributes.beta2 * square + (1.0 - attributes.beta2) * g * g;
    return element.parameter * decay - learning_rate * (mean / first_correction) /
                                           (std::sqrt(square / second_correction) + attributes.eps);
  });
  return OkStatus();
}

}  // namespace troupe::kernels::reference
