// AdamW: Loshchilov and Hutter, "Decoupled weight decay regularization", 2019. As in PyTorch, eps
// is added to the bias-corrected root.
#include "kernels/xla/ops/optimizer.h"

namespace troupe::kernels::xla {

Status AdamW(const Lowering& lowering) {
  Function& text = lowering.text;
  const auto& attributes = lowering.attributes<model::AdamWAttributes>();
  const UpdateStep step = UpdateStepOf(lowering, attributes.max_norm);
  const Tensor one = text.Constant(Element::kF64, {}, 1);
  const Tensor number = text.Convert(text.Reshape(lowering.In(2), {}), Element::kF64);
  const auto narrow = [&](const Tensor& x) { return text.Convert(x, Element::kF32); };
  const auto correction = [&](double beta) {
    return text.Subtract(one, text.Binary("power", text.Constant(Element::kF64, {}, beta), number));
  };
  const Tensor rate = narrow(step.rate);
  const Tensor size = narrow(text.Divide(step.rate, correction(attributes.beta1)));
  const Tensor inverse = narrow(text.Divide(one, text.Unary("sqrt", correction(attributes.beta2))));
  EachUpdated(lowering, step, [&](const Lowering& rank, const ParameterToUpdate& of) {
    const model::ValueId exp_avg = of.operands.states[0], exp_avg_sq = of.operands.states[1];
    const Tensor old_mean = rank.read(exp_avg), old_square = rank.read(exp_avg_sq);
    const Tensor& g = of.gradient;
    const Tensor new_mean = text.Add(text.Multiply(old_mean, attributes.beta1),
                                     text.Multiply(g, 1.0 - attributes.beta1));
    const Tensor new_square = text.Add(text.Multiply(old_square, attributes.beta2),
                                       text.Multiply(text.Multiply(g, g), 1.0 - attributes.beta2));
    // The parameter is computed from the stored moments, so that each moment has one reader and is
    // changed in place.
    const Tensor mean = text.Select(step.applies, new_mean, old_mean);
    const Tensor square = text.Select(step.applies, new_square, old_square);
    const Tensor root =
        text.Add(text.Multiply(text.Unary("sqrt", square), inverse), attributes.eps);
    const Tensor decayed = text.Subtract(text.Constant(Element::kF32, {}, 1),
                                         text.Multiply(rate, attributes.weight_decay));
    const Tensor moved = text.Subtract(text.Multiply(of.parameter, ByDecay(rank, of, decayed, 1)),
                                       text.Divide(text.Multiply(mean, size), root));
    rank.Store(exp_avg, mean);
    rank.Store(exp_avg_sq, square);
    StoreParameter(rank, step, of, moved);
  });
  return OkStatus();
}

}  // namespace troupe::kernels::xla
