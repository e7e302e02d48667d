// Angles are computed in float64, as float32 does not hold those of late positions.
#include <vector>

#include "kernels/numerics/rope_frequencies.h"
#include "kernels/xla/ops/lowering.h"

namespace troupe::kernels::xla {

Status Rope(const Lowering& lowering) {
  Function& text = lowering.text;
  const auto& attributes = lowering.attributes<model::RopeAttributes>();
  const int64_t rows = lowering.Extent(0, 0), dim = attributes.head_dim, half = dim / 2;
  const int64_t heads = attributes.query_heads + 2 * attributes.key_value_heads;
  const int64_t rotated = attributes.query_heads + attributes.key_value_heads;
  std::vector<double> frequencies;
  for (int64_t i = 0; i < half; ++i) frequencies.push_back(RopeFrequency(attributes, i));
  const Tensor angles =
      text.Multiply(text.Broadcast(text.Convert(lowering.In(1), Element::kF64), {rows, half}, {0}),
                    text.Broadcast(text.Vector(Element::kF64, frequencies), {rows, half}, {1}));
  const auto rounded = [&](const Tensor& numbers) {
    const Tensor x = text.Convert(numbers, Element::kF32);
    if (attributes.buffer != model::DType::kBFloat16) return x;
    return text.Convert(text.Convert(x, Element::kBF16), Element::kF32);
  };
  const std::vector<Tensor> tables =
      text.Barrier({rounded(text.Unary("cosine", angles)), rounded(text.Unary("sine", angles))});
  const auto each_head = [&](const Tensor& x) {
    return text.Broadcast(x, {rows, rotated, half}, {0, 2});
  };
  const Tensor cosine = each_head(tables[0]);
  Tensor sine = each_head(tables[1]);
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
