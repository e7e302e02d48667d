// The part that the optimizers of the reference share.
#ifndef TROUPE_KERNELS_REFERENCE_OPTIMIZER_H_
#define TROUPE_KERNELS_REFERENCE_OPTIMIZER_H_

#include <cstddef>
#include <vector>

#include "kernels/backend/update_decision.h"
#include "kernels/reference/operation.h"
#include "model/program/op_rules.h"

namespace troupe::kernels::reference {

struct UpdatedElement {
  double parameter;
  double gradient;  // scaled
  std::vector<double*> states;
  bool decays;
};

// If the step is applied, sets every element of every parameter of an optimizer's operation, and of
// its copy, to what `update` returns for it.
template <typename Update>
void ForEachUpdated(const Operation& operation, double max_norm, const Update& update) {
  const UpdateDecision decision = DecideUpdate(operation.inputs[0], max_norm);
  if (!decision.apply) return;
  auto operand = operation.inputs.begin() + model::kUpdateScalars;
  for (const model::UpdatedParameter& updated : model::UpdatedParameters(operation.op)) {
    const double* const gradient = *operand++;
    double* const parameter = *operand++;
    double* const copy = *operand++;
    UpdatedElement element;
    const auto states = operand;
    operand += static_cast<std::ptrdiff_t>(updated.states.size());
    const int64_t row = operation.program.value(updated.master).row_elements();
    const auto& entry = model::EntryOfMaster(operation.program, updated.master);
    for (const auto& [rows, decays] : model::DecayRuns(entry)) {
      element.decays = decays;
      for (int64_t i = rows.begin * row; i < rows.end * row; ++i) {
        element.states.clear();
        for (auto state = states; state != operand; ++state) element.states.push_back(*state + i);
        element.parameter = parameter[i];
        element.gradient = gradient[i] * decision.gradient_scale;
        parameter[i] = copy[i] = update(element);
      }
    }
  }
}

}  // namespace troupe::kernels::reference

#endif  // TROUPE_KERNELS_REFERENCE_OPTIMIZER_H_
