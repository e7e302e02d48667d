// y = silu(gate) · up; a row of gu is gate[F] | up[F]. With counts, rows beyond their sum are
// zeros.
#include "kernels/xla/ops/experts/choices.h"
#include "kernels/xla/ops/lowering.h"

namespace troupe::kernels::xla {
namespace {

// Stores the result of an operation whose input `index`, if it has one, is the counts.
Status StoreRows(const Lowering& lowering, const Tensor& rows, size_t index) {
  Function& text = lowering.text;
  lowering.Out(0, lowering.inputs() > index
                      ? Masked(text, rows, Counted(text, lowering.In(index), rows.shape[0]))
                      : rows);
  return OkStatus();
}

}  // namespace

Status SwiGlu(const Lowering& lowering) {
  Function& text = lowering.text;
  const Tensor gu = lowering.Float(0);
  const int64_t ffn = gu.shape[1] / 2;
  const Tensor gate = text.Slice(gu, 1, 0, ffn), up = text.Slice(gu, 1, ffn, 2 * ffn);
  return StoreRows(lowering, text.Multiply(text.Multiply(gate, text.Unary("logistic", gate)), up),
                   1);
}

Status SwiGluGrad(const Lowering& lowering) {
  Function& text = lowering.text;
  // Without the barrier, a compiler of forward and backward converts gu once and keeps the result
  // of every layer, which has twice the bytes.
  Function::State saved = {lowering.In(0), lowering.In(1)};
  if (saved[1].element == Element::kBF16) saved = text.Barrier(saved);
  const Tensor dy = text.Convert(saved[0], Element::kF32);
  const Tensor gu = text.Convert(saved[1], Element::kF32);
  const int64_t ffn = gu.shape[1] / 2;
  const Tensor gate = text.Slice(gu, 1, 0, ffn), up = text.Slice(gu, 1, ffn, 2 * ffn);
  const Tensor sigmoid = text.Unary("logistic", gate);
  const Tensor one = text.Constant(Element::kF32, {}, 1);
  const Tensor slope =
      text.Multiply(sigmoid, text.Add(text.Multiply(gate, text.Subtract(one, sigmoid)), 1));
  const Tensor dgu = text.Concatenate({text.Multiply(text.Multiply(dy, up), slope),
                                       text.Multiply(text.Multiply(dy, gate), sigmoid)},
                                      1);
  return StoreRows(lowering, dgu, 2);
}

}  // namespace troupe::kernels::xla
