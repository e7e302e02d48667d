// logits = x wᵀ and its gradients, in float32.
#include "kernels/xla/ops/lowering.h"

namespace troupe::kernels::xla {

Status RouterLogits(const Lowering& lowering) {
  lowering.Out(0, lowering.text.Dot(lowering.Float(0), lowering.In(1), {.contracted = {{1, 1}}}));
  return OkStatus();
}

Status RouterLogitsGradInput(const Lowering& lowering) {
  lowering.Out(0, lowering.text.Dot(lowering.In(0), lowering.In(1), {.contracted = {{1, 0}}}));
  return OkStatus();
}

Status RouterLogitsGradWeight(const Lowering& lowering) {
  lowering.Accumulate(
      0, lowering.text.Dot(lowering.In(0), lowering.Float(1), {.contracted = {{0, 0}}}));
  return OkStatus();
}

}  // namespace troupe::kernels::xla
