// Stochastic gradient descent as torch.optim.SGD, without dampening.
#include "kernels/xla/ops/optimizer.h"

namespace troupe::kernels::xla {

Status Sgd(const Lowering& lowering) {
  Function& text = lowering.text;
  const auto& attributes = lowering.attributes<model::SgdAttributes>();
  const UpdateStep step = UpdateStepOf(lowering, attributes.max_norm);
  const Tensor rate = text.Convert(step.rate, Element::kF32);
  EachUpdated(lowering, step, [&](const Lowering& rank, const ParameterToUpdate& of) {
    const Tensor decay = text.Constant(Element::kF32, {}, attributes.weight_decay);
    Tensor g = text.Add(of.gradient, text.Multiply(of.parameter, ByDecay(rank, of, decay, 0)));
    if (attributes.momentum != 0) {
      const model::ValueId momentum_buffer = of.operands.states[0];
      const Tensor before = rank.read(momentum_buffer);
      const Tensor sum = text.Add(text.Multiply(before, attributes.momentum), g);
      const Tensor buffer = text.Select(step.applies, sum, before);
      rank.Store(momentum_buffer, buffer);
      g = attributes.nesterov ? text.Add(g, text.Multiply(buffer, attributes.momentum)) : buffer;
    }
    StoreParameter(rank, step, of, text.Subtract(of.parameter, text.Multiply(g, rate)));
  });
  return OkStatus();
}

}  // namespace troupe::kernels::xla
