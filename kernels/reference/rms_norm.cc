// y = x · rstd · w with rstd = 1 / sqrt(mean(x²) + eps).
#include <algorithm>
#include <cmath>

#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {
namespace {

void Normalize(int64_t rows, int64_t hidden, double eps, const double* x, const double* w,
               double* y, double* rstd) {
  for (int64_t r = 0; r < rows; ++r) {
    double squares = 0;
    for (int64_t h = 0; h < hidden; ++h) squares += x[r * hidden + h] * x[r * hidden + h];
    rstd[r] = 1.0 / std::sqrt(squares / static_cast<double>(hidden) + eps);
    for (int64_t h = 0; h < hidden; ++h) y[r * hidden + h] = x[r * hidden + h] * rstd[r] * w[h];
  }
}

}  // namespace

Status RmsNorm(const Operation& operation) {
  Normalize(operation.Extent(0, 0), operation.Extent(0, 1),
            operation.attributes<model::NormAttributes>().eps, operation.inputs[0],
            operation.inputs[1], operation.outputs[0], operation.outputs[1]);
  return OkStatus();
}

Status AddRmsNorm(const Operation& operation) {
  const int64_t rows = operation.Extent(0, 0);
  const int64_t hidden = operation.Extent(0, 1);
  for (int64_t i = 0; i < rows * hidden; ++i) {
    operation.outputs[0][i] = operation.inputs[0][i] + operation.inputs[1][i];
  }
  Normalize(rows, hidden, operation.attributes<model::NormAttributes>().eps, operation.outputs[0],
            operation.inputs[2], operation.outputs[1], operation.outputs[2]);
  return OkStatus();
}

// With g = dy · w: dx = rstd · (g - x · rstd² · mean(g · x)) + dres;  dw += Σ_rows dy · x · rstd.
Status RmsNormGrad(const Operation& operation) {
  const int64_t rows = operation.Extent(0, 0);
  const int64_t hidden = operation.Extent(0, 1);
  const double* w = operation.inputs[2];
  double* dw = operation.outputs[1];
  if (!operation.accumulate) std::fill_n(dw, hidden, 0.0);
  for (int64_t r = 0; r < rows; ++r) {
    const double* dy = operation.inputs[0] + r * hidden;
    const double* x = operation.inputs[1] + r * hidden;
    const double rstd = operation.inputs[3][r];
    double dot = 0;
    for (int64_t h = 0; h < hidden; ++h) dot += dy[h] * w[h] * x[h];
    const double shift = rstd * rstd * dot / static_cast<double>(hidden);
    for (int64_t h = 0; h < hidden; ++h) {
      dw[h] += dy[h] * x[h] * rstd;
      const double residual =
          operation.inputs.size() > 4 ? operation.inputs[4][r * hidden + h] : 0.0;
      operation.outputs[0][r * hidden + h] = rstd * (dy[h] * w[h] - x[h] * shift) + residual;
    }
  }
  return OkStatus();
}

}  // namespace troupe::kernels::reference
