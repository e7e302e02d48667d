#include <algorithm>

#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {

Status Embedding(const Operation& operation) {
  const int64_t rows = operation.Extent(0, 0);
  const int64_t vocabulary = operation.Extent(1, 0);
  const int64_t hidden = operation.Extent(1, 1);
  const int64_t offset = operation.attributes<model::VocabAttributes>().vocab_offset;
  for (int64_t r = 0; r < rows; ++r) {
    double* y = operation.outputs[0] + r * hidden;
    const int64_t id = static_cast<int64_t>(operation.inputs[0][r]) - offset;
    if (id >= 0 && id < vocabulary) {
      std::copy_n(operation.inputs[1] + id * hidden, hidden, y);
    } else {
      std::fill_n(y, hidden, 0.0);
    }
  }
  return OkStatus();
}

Status EmbeddingGrad(const Operation& operation) {
  const int64_t rows = operation.Extent(0, 0);
  const int64_t vocabulary = operation.Output(0).dims[0].local;
  const int64_t hidden = operation.Output(0).dims[1].local;
  const int64_t offset = operation.attributes<model::VocabAttributes>().vocab_offset;
  double* gradient = operation.outputs[0];
  if (!operation.accumulate) std::fill_n(gradient, vocabulary * hidden, 0.0);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t id = static_cast<int64_t>(operation.inputs[0][r]) - offset;
    if (id < 0 || id >= vocabulary) continue;
    for (int64_t h = 0; h < hidden; ++h) {
      gradient[id * hidden + h] += operation.inputs[1][r * hidden + h];
    }
  }
  return OkStatus();
}

}  // namespace troupe::kernels::reference
