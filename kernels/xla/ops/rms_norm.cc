// y = x · rstd · w with rstd = 1 / sqrt(mean(x²) + eps).
#include "kernels/xla/ops/lowering.h"
#include "kernels/xla/ops/stored.h"

namespace troupe::kernels::xla {
namespace {

Tensor OfRows(Function& text, const Tensor& rows, const Shape& shape) {
  return text.Broadcast(rows, shape, {0});
}

// Normalises x f[R,H] with w f[H]; y and rstd become outputs `y` and `y` + 1.
void Normalize(const Lowering& lowering, const Tensor& x, const Tensor& w, size_t y) {
  Function& text = lowering.text;
  const Tensor squares = text.Reduce("add", text.Multiply(x, x), {1});
  const Tensor mean = text.Multiply(squares, 1.0 / static_cast<double>(x.shape[1]));
  const Tensor rstd =
      text.Unary("rsqrt", text.Add(mean, lowering.attributes<model::NormAttributes>().eps));
  const Tensor scaled = text.Multiply(x, OfRows(text, rstd, x.shape));
  lowering.Out(y, text.Multiply(scaled, text.Broadcast(w, x.shape, {1})));
  lowering.Out(y + 1, rstd);
}

}  // namespace

Status RmsNorm(const Lowering& lowering) {
  Normalize(lowering, lowering.Float(0), lowering.In(1), 0);
  return OkStatus();
}

// The norm reads the sum as it is stored.
Status AddRmsNorm(const Lowering& lowering) {
  Function& text = lowering.text;
  lowering.Out(0, text.Add(lowering.Float(0), lowering.Float(1)));
  const Tensor sum = text.Convert(lowering.read(lowering.op.outputs[0]), Element::kF32);
  Normalize(lowering, sum, lowering.In(2), 1);
  return OkStatus();
}

// With g = dy · w: dx = rstd · (g - x · rstd² · mean(g · x)) + dres;  dw += Σ_rows dy · x · rstd.
Status RmsNormGrad(const Lowering& lowering) {
  Function& text = lowering.text;
  const Tensor dy = lowering.Float(0), x = lowering.Float(1), rstd = lowering.In(3);
  const Tensor g = text.Multiply(dy, text.Broadcast(lowering.In(2), x.shape, {1}));
  const Tensor dot = text.Reduce("add", text.Multiply(g, x), {1});
  const Tensor shift = text.Multiply(text.Multiply(text.Multiply(rstd, rstd), dot),
                                     1.0 / static_cast<double>(x.shape[1]));
  const Tensor each_rstd = OfRows(text, rstd, x.shape);
  Tensor dx =
      text.Multiply(each_rstd, text.Subtract(g, text.Multiply(x, OfRows(text, shift, x.shape))));
  if (lowering.inputs() > 4) dx = text.Add(dx, lowering.Float(4));
  const Tensor dw = text.Reduce("add", text.Multiply(text.Multiply(dy, x), each_rstd), {0});
  if (lowering.Output(0).dtype != model::DType::kFloat32) {
    dx = Stored(text, text.Convert(dx, ElementOf(lowering.Output(0).dtype)),
                text.Reshape(text.Slice(rstd, 0, 0, 1), {}));
  }
  lowering.Out(0, dx);
  lowering.Accumulate(1, dw);
  return OkStatus();
}

}  // namespace troupe::kernels::xla
