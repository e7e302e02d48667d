// Angles are computed in float64, as float32 does not hold those of late positions.
#include <vector>

#include "kernels/numerics/rope_frequencies.h"
#include "kernels/xla/ops/lowering.h"
#include "kernels/xla/ops/stored.h"

namespace troupe::kernels::xla {
namespace {

struct Tables {
  Tensor cosine, sine;  // f[R,D/2]
};

// The tables of positions i[R], which all heads read.
Tables TablesOf(Function& text, const model::RopeAttributes& attributes, const Tensor& positions) {
  const Shape shape = {positions.shape[0], attributes.head_dim / 2};
  std::vector<double> frequencies;
  for (int64_t i = 0; i < shape[1]; ++i) frequencies.push_back(RopeFrequency(attributes, i));
  const Tensor angles =
      text.Multiply(text.Broadcast(text.Convert(positions, Element::kF64), shape, {0}),
                    text.Broadcast(text.Vector(Element::kF64, frequencies), shape, {1}));
  const Tensor first = text.Reshape(text.Slice(positions, 0, 0, 1), {});
  const auto table = [&](const Tensor& numbers) {
    Tensor x = text.Convert(numbers, Element::kF32);
    if (attributes.buffer == model::DType::kBFloat16)
      x = text.Convert(text.Convert(x, Element::kBF16), Element::kF32);
    return Stored(text, x, first);
  };
  return {table(text.Unary("cosine", angles)), table(text.Unary("sine", angles))};
}

}  // namespace

Status Rope(const Lowering& lowering) {
  Function& text = lowering.text;
  const auto& attributes = lowering.attributes<model::RopeAttributes>();
  const int64_t rows = lowering.Extent(0, 0), dim = attributes.head_dim, half = dim / 2;
  const int64_t heads = attributes.query_heads + 2 * attributes.key_value_heads;
  const int64_t rotated = attributes.query_heads + attributes.key_value_heads;
  const Tables tables = TablesOf(text, attributes, lowering.In(1));
  const auto each_head = [&](const Tensor& x) {
    return text.Broadcast(x, {rows, rotated, half}, {0, 2});
  };
  const Tensor cosine = each_head(tables.cosine);
  Tensor sine = each_head(tables.sine);
  if (attributes.inverse) sine = text.Unary("negate", sine);

  const Tensor x = text.Reshape(lowering.Float(0), {rows, heads, dim});
  const Tensor turning = text.Slice(x, 1, 0, rotated);
  const Tensor first = text.Slice(turning, 2, 0, half), second = text.Slice(turning, 2, half, dim);
  const Tensor turned =
      text.Concatenate({text.Subtract(text.Multiply(first, cosine), text.Multiply(second, sine)),
                        text.Add(text.Multiply(second, cosine), text.Multiply(first, sine))},
                       2);
  lowering.Out(0, text.Concatenate({turned, text.Slice(x, 1, rotated, heads)}, 1));
  return OkStatus();
}

}  // namespace troupe::kernels::xla
