#include "kernels/numerics/dropout_draw.h"
#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {

Status Dropout(const Operation& operation) {
  const auto& attributes = operation.attributes<model::DropoutAttributes>();
  const uint32_t threshold = DropoutThreshold(attributes.probability);
  const int64_t rows = operation.Extent(0, 0), hidden = operation.Extent(0, 1);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t row = attributes.own.At(r);
    const int64_t sample = row / attributes.held.rows;
    const DropoutRow at = {
        static_cast<uint32_t>(operation.inputs[1][2 * sample]),
        static_cast<uint32_t>(operation.inputs[1][2 * sample + 1]),
        static_cast<uint32_t>(attributes.held.Position(row % attributes.held.rows))};
    const double* x = operation.inputs[0] + r * hidden;
    double* y = operation.outputs[0] + r * hidden;
    for (int64_t h = 0; h < hidden; ++h) {
      const bool kept = at.step == 0 || DropoutDraw(attributes.key, at, h) >= threshold;
      y[h] = !kept ? 0 : at.step == 0 ? x[h] : x[h] / (1 - attributes.probability);
    }
  }
  return OkStatus();
}

}  // namespace troupe::kernels::reference
