// y[slots[r,j]] = x[r], zeros in slots that no choice has; the gradient sums the rows back.
#include "kernels/xla/ops/experts/choices.h"
#include "kernels/xla/ops/lowering.h"

namespace troupe::kernels::xla {

Status Permute(const Lowering& lowering) {
  Function& text = lowering.text;
  const Tensor slots = lowering.In(1);
  const Tensor choices = ChoicesOfSlots(text, slots, lowering.Output(0).dims[0].local);
  lowering.Out(0, RowsOrZeros(text, lowering.In(0), RowsOfChoices(text, choices, slots.shape[1])));
  return OkStatus();
}

Status PermuteGrad(const Lowering& lowering) {
  Function& text = lowering.text;
  const Tensor dy = lowering.In(0), slots = lowering.In(1);
  Tensor sum = text.Constant(Element::kF32, {slots.shape[0], dy.shape[1]}, 0);
  for (int64_t j = 0; j < slots.shape[1]; ++j) {
    const Tensor rows = RowsOrZeros(text, dy, Column(text, slots, j));
    sum = text.Add(sum, text.Convert(rows, Element::kF32));
  }
  lowering.Out(0, sum);
  return OkStatus();
}

}  // namespace troupe::kernels::xla
