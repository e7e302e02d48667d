// The part that lowerings of optimizers share. A step that is not applied selects the old contents.
#ifndef TROUPE_KERNELS_XLA_OPS_OPTIMIZER_H_
#define TROUPE_KERNELS_XLA_OPS_OPTIMIZER_H_

#include <functional>

#include "kernels/xla/ops/lowering.h"
#include "kernels/xla/text/function.h"
#include "model/program/op_rules.h"

namespace troupe::kernels::xla {

// Scalars that all elements of a step share.
struct UpdateStep {
  Tensor applies;  // i1
  Tensor scale;    // f32: clip factor / sum of weights
  Tensor rate;     // f64
};
// The scalars of an optimizer's operation.
UpdateStep UpdateStepOf(const Lowering& lowering, double max_norm);

// One parameter of one rank before the step.
struct ParameterToUpdate {
  const model::UpdatedParameter& operands;
  Tensor parameter;
  Tensor gradient;  // f32, scaled, of the parameter's shape
};
// Calls `update` for each parameter of which the rank has an element.
void EachUpdated(
    const Lowering& lowering, const UpdateStep& step,
    const std::function<void(const Lowering& rank, const ParameterToUpdate& of)>& update);

// A factor f32 for each row: `decayed` where rows decay, else `kept`. A scalar, or of the
// parameter's shape.
Tensor ByDecay(const Lowering& rank, const ParameterToUpdate& of, const Tensor& decayed,
               double kept);

// Stores `moved`, if the step is applied, as the parameter and as its copy.
void StoreParameter(const Lowering& rank, const UpdateStep& step, const ParameterToUpdate& of,
                    const Tensor& moved);

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_OPS_OPTIMIZER_H_
