// y = silu(gate) · up; a row of gu is gate[F] | up[F]. With counts, rows beyond their sum are
// computed too: nothing reads them.
#include "kernels/xla/ops/lowering.h"

namespace troupe::kernels::xla {

Status SwiGlu(const Lowering& lowering) {
  Function& text = lowering.text;
  const Tensor gu = lowering.Float(0);
  const int64_t ffn = gu.shape[1] / 2;
  const Tensor gate = text.Slice(gu, 1, 0, ffn), up = text.Slice(gu, 1, ffn, 2 * ffn);
  lowering.Out(0, text.Multiply(text.Multiply(gate, text.Unary("logistic", gate)), up));
  return OkStatus();
}

Status SwiGluGrad(const Lowering& lowering) {
  Function& text = lowering.text;
  const Tensor dy = lowering.Float(0), gu = lowering.Float(1);
  const int64_t ffn = gu.shape[1] / 2;
  const Tensor gate = text.Slice(gu, 1, 0, ffn), up = text.Slice(gu, 1, ffn, 2 * ffn);
  const Tensor sigmoid = text.Unary("logistic", gate);
  const Tensor one = text.Constant(Element::kF32, {}, 1);
  const Tensor slope = text.Multiply(
      sigmoid, text.Add(text.Multiply(gate, text.Subtract(one, sigmoid)), 1));
  lowering.Out(0, text.Concatenate({text.Multiply(text.Multiply(dy, up), slope),
                                    text.Multiply(text.Multiply(dy, gate), sigmoid)},
                                   1));
  return OkStatus();
}

}  // namespace troupe::kernels::xla
