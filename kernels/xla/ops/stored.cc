#include "kernels/xla/ops/stored.h"

namespace troupe::kernels::xla {

Tensor Stored(Function& text, const Tensor& x, const Tensor& number) {
  const Tensor is_positive = text.Convert(text.Compare("GE", number, 0), Element::kI32);
  const Tensor rounds = text.Binary("maximum", is_positive, text.Constant(Element::kI32, {}, 1));
  const Function::State end = text.While(
      {text.Constant(x.element, x.shape, 0), x, rounds},
      [&](const Function::State& state) { return text.Compare("GT", state[2], 0); },
      [&](const Function::State& state) -> Function::State {
        return {state[1], state[1], text.Add(state[2], -1)};
      });
  return end[0];
}

}  // namespace troupe::kernels::xla
