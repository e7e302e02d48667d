#include <cmath>

#include "kernels/numerics/bfloat16.h"
#include "kernels/numerics/rope_frequencies.h"
#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {
namespace {

double InBuffer(double x, model::DType buffer) {
  return buffer == model::DType::kBFloat16 ? ToFloat(ToBFloat16(static_cast<float>(x))) : x;
}

}  // namespace

Status Rope(const Operation& operation) {
  const auto& attributes = operation.attributes<model::RopeAttributes>();
  const int64_t rows = operation.Extent(0, 0);
  const int64_t head_dim = attributes.head_dim;
  const int64_t heads = attributes.query_heads + 2 * attributes.key_value_heads;
  const int64_t rotated = attributes.query_heads + attributes.key_value_heads;
  const int64_t half = head_dim / 2;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t head = 0; head < heads; ++head) {
      const double* x = operation.inputs[0] + (r * heads + head) * head_dim;
      double* y = operation.outputs[0] + (r * heads + head) * head_dim;
      if (head >= rotated) {
        for (int64_t d = 0; d < head_dim; ++d) y[d] = x[d];
        continue;
      }
      for (int64_t i = 0; i < half; ++i) {
        const double angle = operation.inputs[1][r] * RopeFrequency(attributes, i);
        const double sine =
            InBuffer(attributes.inverse ? -std::sin(angle) : std::sin(angle), attributes.buffer);
        const double cosine = InBuffer(std::cos(angle), attributes.buffer);
        const double first = x[i];
        const double second = x[i + half];
        y[i] = first * cosine - second * sine;
        y[i + half] = second * cosine + first * sine;
      }
    }
  }
  return OkStatus();
}

}  // namespace troupe::kernels::reference
