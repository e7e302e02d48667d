// AdamW: Loshchilov and Hutter, "Decoupled weight decay regularization", 2019. As in PyTorch, eps
// is added to the bias-corrected root.
#include <cmath>

#include "kernels/backend/update_decision.h"
#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {

Status AdamW(const Operation& operation) {
  const auto& attributes = operation.attributes<model::AdamWAttributes>();
  const UpdateDecision decision = DecideUpdate(operation.inputs[0], attributes.max_norm);
  if (!decision.apply) return OkStatus();
  const double learning_rate = *operation.inputs[1];
  const double step = *operation.inputs[2] += 1;
  const double first_correction = 1.0 - std::pow(attributes.beta1, step);
  const double second_correction = 1.0 - std::pow(attributes.beta2, step);
  for (size_t p = 0; p < operation.program.parameters.size(); ++p) {
    const model::ParameterEntry& entry = operation.program.parameters[p];
    double* parameter = operation.address(entry.value);
    const double* gradient = operation.inputs[3 + p];
    double* mean = operation.address(entry.exp_avg);
    double* square = operation.address(entry.exp_avg_sq);
    double* copy = operation.address(entry.compute_copy);
    const int64_t row = operation.program.value(entry.value).row_elements();
    for (const auto& [rows, decays] : model::DecayRuns(entry)) {
      const double decay = decays ? 1.0 - learning_rate * attributes.weight_decay : 1.0;
      for (int64_t i = rows.begin * row; i < rows.end * row; ++i) {
        const double g = gradient[i] * decision.gradient_scale;
        mean[i] = attributes.beta1 * mean[i] + (1.0 - attributes.beta1) * g;
        square[i] = attributes.beta2 * square[i] + (1.0 - attributes.beta2) * g * g;
        parameter[i] =
            parameter[i] * decay - learning_rate * (mean[i] / first_correction) /
                                       (std::sqrt(square[i] / second_correction) + attributes.eps);
        copy[i] = parameter[i];
      }
    }
  }
  return OkStatus();
}

}  // namespace troupe::kernels::reference
