// Local statistics of a slice of the vocabulary (maximum, Σ exp(l - max), the target's logit) and
// their gradient.
#include <algorithm>
#include <cmath>

#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {

Status SoftmaxStats(const Operation& operation) {
  const int64_t rows = operation.Extent(0, 0);
  const int64_t vocabulary = operation.Extent(0, 1);
  const int64_t offset = operation.attributes<model::VocabAttributes>().vocab_offset;
  for (int64_t r = 0; r < rows; ++r) {
    const double* logits = operation.inputs[0] + r * vocabulary;
    double largest = -INFINITY;
    for (int64_t v = 0; v < vocabulary; ++v) largest = logits[v] > largest ? logits[v] : largest;
    double total = 0;
    for (int64_t v = 0; v < vocabulary; ++v) total += std::exp(logits[v] - largest);
    const int64_t target = static_cast<int64_t>(operation.inputs[1][r]) - offset;
    operation.outputs[0][r] = largest;
    operation.outputs[1][r] = total;
    operation.outputs[1][rows + r] = target >= 0 && target < vocabulary ? logits[target] : 0.0;
  }
  return OkStatus();
}

Status SoftmaxRescale(const Operation& operation) {
  const int64_t rows = operation.Extent(1, 0);
  for (int64_t r = 0; r < rows; ++r) {
    operation.outputs[0][r] =
        operation.inputs[0][r] * std::exp(operation.inputs[1][r] - operation.inputs[2][r]);
    operation.outputs[0][rows + r] = operation.inputs[0][rows + r];
  }
  return OkStatus();
}

// The gradient is the same map, because the map is linear in its first input.
Status SoftmaxRescaleGrad(const Operation& operation) { return SoftmaxRescale(operation); }

Status SoftmaxStatsGrad(const Operation& operation) {
  const int64_t rows = operation.Extent(0, 0);
  const int64_t vocabulary = operation.Extent(0, 1);
  const int64_t offset = operation.attributes<model::VocabAttributes>().vocab_offset;
  for (int64_t r = 0; r < rows; ++r) {
    const double* logits = operation.inputs[0] + r * vocabulary;
    double* gradient = operation.outputs[0] + r * vocabulary;
    const double largest = operation.inputs[2][r];
    for (int64_t v = 0; v < vocabulary; ++v) {
      gradient[v] = operation.inputs[3][r] * std::exp(logits[v] - largest);
    }
    const int64_t target = static_cast<int64_t>(operation.inputs[1][r]) - offset;
    if (target >= 0 && target < vocabulary) gradient[target] += operation.inputs[3][rows + r];
  }
  return OkStatus();
}

Status SoftmaxStatsAndGrad(const Operation& operation) {
  const int64_t rows = operation.Extent(0, 0);
  const int64_t vocabulary = operation.Extent(0, 1);
  const double z = operation.attributes<model::LossAttributes>().z_loss_coef;
  for (int64_t r = 0; r < rows; ++r) {
    const double* logits = operation.inputs[0] + r * vocabulary;
    double* gradient = operation.outputs[0] + r * vocabulary;
    const auto target = static_cast<int64_t>(operation.inputs[1][r]);
    const double weight = operation.inputs[2][r];
    const double largest = *std::max_element(logits, logits + vocabulary);
    double total = 0;
    for (int64_t v = 0; v < vocabulary; ++v) total += std::exp(logits[v] - largest);
    operation.outputs[1][r] = largest;
    operation.outputs[2][r] = total;
    const bool here = target >= 0 && target < vocabulary;
    operation.outputs[2][rows + r] = here ? logits[target] : 0.0;
    const double factor = weight / total * (1 + 2 * z * (std::log(total) + largest));
    for (int64_t v = 0; v < vocabulary; ++v) gradient[v] = factor * std::exp(logits[v] - largest);
    if (here) gradient[target] -= weight;
  }
  return OkStatus();
}

}  // namespace troupe::kernels::reference
