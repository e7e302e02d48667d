// Lanes of the control word (model/program/control_word.h) in a program's text. Formulas:
// kernels/backend/update_decision.h. The functions append to the text and change nothing else.
#ifndef TROUPE_KERNELS_XLA_OPS_CONTROL_LANES_H_
#define TROUPE_KERNELS_XLA_OPS_CONTROL_LANES_H_

#include "kernels/xla/ops/lowering.h"
#include "kernels/xla/text/function.h"

namespace troupe::kernels::xla {

// Element `lane` of a vector, as a scalar.
Tensor Lane(Function& text, const Tensor& control, int64_t lane);
// The vector with another element `lane`.
Tensor WithLane(Function& text, const Tensor& control, int64_t lane, const Tensor& number);
// i1: whether the step's update is applied.
Tensor UpdateApplies(Function& text, const Tensor& control);
// The word with this rank's tag 1 + rank in its non-finite lane unless `is_finite`; the largest tag
// remains. REQUIRES: the operation has ControlAttributes.
Tensor MarkedNonfinite(const Lowering& lowering, const Tensor& control, const Tensor& is_finite);

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_OPS_CONTROL_LANES_H_
