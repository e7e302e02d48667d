#include "kernels/xla/ops/experts/choices.h"

namespace troupe::kernels::xla {

Tensor WithRows(Function& text, const Tensor& x, int64_t rows) {
  if (rows <= x.shape[0]) return text.Slice(x, 0, 0, rows);
  return text.Pad(x, 0, 0, rows - x.shape[0]);
}

Tensor SumOf(Function& text, const Tensor& counts) { return text.Reduce("add", counts, {0}); }

Tensor Masked(Function& text, const Tensor& x, const Tensor& kept) {
  return text.Select(text.Broadcast(kept, x.shape, {0}), x, text.Constant(x.element, {}, 0));
}

Tensor Counted(Function& text, const Tensor& counts, int64_t rows) {
  return text.Compare("LT", text.Iota(Element::kI32, {rows}, 0), SumOf(text, counts));
}

Tensor SumsBefore(Function& text, const Tensor& counts) {
  const Shape pairs = {counts.shape[0], counts.shape[0]};
  const Tensor before =
      text.Compare("LT", text.Iota(Element::kI32, pairs, 1), text.Iota(Element::kI32, pairs, 0));
  return text.Reduce(
      "add",
      text.Select(before, text.Broadcast(counts, pairs, {1}), text.Constant(counts.element, {}, 0)),
      {1});
}

Tensor CountsOfEach(Function& text, const Tensor& experts, int64_t count) {
  const Shape pairs = {experts.shape[0], count};
  const Tensor equal =
      text.Compare("EQ", text.Broadcast(experts, pairs, {0}), text.Iota(Element::kI32, pairs, 1));
  return text.Reduce("add", text.Convert(equal, Element::kI32), {0});
}

Ascending SortAscending(Function& text, const Tensor& numbers) {
  const auto [negated, indices] = text.SortDescending(text.Unary("negate", numbers),
                                                      text.Iota(Element::kI32, numbers.shape, 0));
  return {text.Unary("negate", negated), indices};
}

Tensor AtIndices(Function& text, const Tensor& indices, const Tensor& numbers) {
  return text.Scatter(text.Constant(numbers.element, numbers.shape, 0), indices, numbers, false);
}

Tensor ChoicesOfSlots(Function& text, const Tensor& slots, int64_t count) {
  const Shape flat = {ElementsOf(slots.shape)};
  return text.Scatter(text.Constant(Element::kI32, {count}, -1), text.Reshape(slots, flat),
                      text.Iota(Element::kI32, flat, 0), false);
}

Tensor RowsOfChoices(Function& text, const Tensor& choices, int64_t k) {
  const Tensor divisor = text.Constant(Element::kI32, {}, static_cast<double>(k));
  return text.Select(text.Compare("LT", choices, 0), choices, text.Divide(choices, divisor));
}

Tensor Column(Function& text, const Tensor& x, int64_t choice) {
  return text.Reshape(text.Slice(x, 1, choice, choice + 1), {x.shape[0]});
}

Tensor RowsOrZeros(Function& text, const Tensor& x, const Tensor& rows) {
  return Masked(text, text.Gather(x, rows), text.Compare("GE", rows, 0));
}

}  // namespace troupe::kernels::xla
