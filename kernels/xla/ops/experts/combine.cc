// y[r] = Σ_j weights[r,j]·x[slots[r,j]] and its gradients.
#include "kernels/xla/ops/experts/choices.h"
#include "kernels/xla/ops/lowering.h"

namespace troupe::kernels::xla {
namespace {

// The rows of choice j of each token, as float32.
Tensor RowsOfChoice(Function& text, const Tensor& x, const Tensor& slots, int64_t j) {
  return text.Convert(RowsOrZeros(text, x, Column(text, slots, j)), Element::kF32);
}

}  // namespace

Status Combine(const Lowering& lowering) {
  Function& text = lowering.text;
  const Tensor x = lowering.In(0), slots = lowering.In(1), weights = lowering.In(2);
  const Shape shape = {slots.shape[0], x.shape[1]};
  Tensor sum = text.Constant(Element::kF32, shape, 0);
  for (int64_t j = 0; j < slots.shape[1]; ++j) {
    const Tensor weight = text.Broadcast(Column(text, weights, j), shape, {0});
    sum = text.Add(sum, text.Multiply(weight, RowsOfChoice(text, x, slots, j)));
  }
  lowering.Out(0, sum);
  return OkStatus();
}

Status CombineGrad(const Lowering& lowering) {
  Function& text = lowering.text;
  const Tensor dy = lowering.In(0), x = lowering.In(1), slots = lowering.In(2),
               weights = lowering.In(3);
  const int64_t rows = slots.shape[0], k = slots.shape[1];
  const Tensor choices = ChoicesOfSlots(text, slots, x.shape[0]);
  const Tensor gathered =
      text.Convert(RowsOrZeros(text, dy, RowsOfChoices(text, choices, k)), Element::kF32);
  const Tensor weight = text.Gather(text.Reshape(weights, {rows * k}), choices);
  lowering.Out(0, text.Multiply(gathered, text.Broadcast(weight, gathered.shape, {0})));

  const Tensor wide = text.Convert(dy, Element::kF32);
  std::vector<Tensor> dweights;
  for (int64_t j = 0; j < k; ++j) {
    const Tensor product = text.Multiply(RowsOfChoice(text, x, slots, j), wide);
    dweights.push_back(text.Reshape(text.Reduce("add", product, {1}), {rows, 1}));
  }
  lowering.Out(1, text.Concatenate(dweights, 1));
  return OkStatus();
}

}  // namespace troupe::kernels::xla
