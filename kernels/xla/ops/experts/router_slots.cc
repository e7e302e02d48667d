// Selects the choices of this rank's experts among those of all ranks; each gets a row, sorted by
// expert, then token.
#include "kernels/xla/ops/experts/choices.h"
#include "kernels/xla/ops/lowering.h"

namespace troupe::kernels::xla {

Status RouterSlots(const Lowering& lowering) {
  Function& text = lowering.text;
  const auto& router = lowering.attributes<model::RouterAttributes>();
  const int64_t choices = lowering.Input(0).elements(), count = router.local_experts;
  const Tensor first = lowering.Number(Element::kI32, [](const Lowering& rank) {
    return static_cast<double>(rank.attributes<model::RouterAttributes>().first_expert);
  });
  const Tensor local = text.Subtract(text.Reshape(lowering.In(0), {choices}), first);
  const Tensor kept = text.Compare("GE", text.Reshape(lowering.In(1), {choices}), 0);
  const Tensor here = text.Binary("and", text.Compare("GE", local, 0),
                                  text.Compare("LT", local, static_cast<double>(count)));
  const Tensor others = text.Constant(Element::kI32, {}, static_cast<double>(count));
  const Tensor experts = text.Select(text.Binary("and", kept, here), local, others);
  const Ascending sorted = SortAscending(text, experts);
  const Tensor slots =
      text.Select(text.Compare("LT", sorted.numbers, others),
                  text.Iota(Element::kI32, {choices}, 0), text.Constant(Element::kI32, {}, -1));
  lowering.Out(0, AtIndices(text, sorted.indices, slots));
  lowering.Out(1, CountsOfEach(text, experts, count));
  return OkStatus();
}

}  // namespace troupe::kernels::xla
