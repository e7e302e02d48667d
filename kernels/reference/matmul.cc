#include <algorithm>

#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {

// y[R,N] = x[R,K] wᵀ, w[N,K].
void Matmul(const Operation& operation) {
  const int64_t rows = operation.Extent(0, 0);
  const int64_t k_extent = operation.Extent(1, 1);
  const int64_t n_extent = operation.Extent(1, 0);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t n = 0; n < n_extent; ++n) {
      const double* x = operation.inputs[0] + r * k_extent;
      const double* w = operation.inputs[1] + n * k_extent;
      double sum = 0;
      for (int64_t k = 0; k < k_extent; ++k) sum += x[k] * w[k];
      operation.outputs[0][r * n_extent + n] = sum;
    }
  }
}

// dx[R,K] = dy[R,N] w.
void MatmulGradInput(const Operation& operation) {
  const int64_t rows = operation.Extent(0, 0);
  const int64_t k_extent = operation.Extent(1, 1);
  const int64_t n_extent = operation.Extent(1, 0);
  std::fill_n(operation.outputs[0], rows * k_extent, 0.0);
  for (int64_t r = 0; r < rows; ++r) {
    double* dx = operation.outputs[0] + r * k_extent;
    for (int64_t n = 0; n < n_extent; ++n) {
      const double dy = operation.inputs[0][r * n_extent + n];
      const double* w = operation.inputs[1] + n * k_extent;
      for (int64_t k = 0; k < k_extent; ++k) dx[k] += dy * w[k];
    }
  }
}

// dw[N,K] += dyᵀ x.
void MatmulGradWeight(const Operation& operation) {
  const int64_t rows = operation.Extent(0, 0);
  const int64_t n_extent = operation.Extent(0, 1);
  const int64_t k_extent = operation.Extent(1, 1);
  double* gradient = operation.outputs[0];
  if (!operation.accumulate) std::fill_n(gradient, n_extent * k_extent, 0.0);
  for (int64_t r = 0; r < rows; ++r) {
    const double* x = operation.inputs[1] + r * k_extent;
    for (int64_t n = 0; n < n_extent; ++n) {
      const double dy = operation.inputs[0][r * n_extent + n];
      for (int64_t k = 0; k < k_extent; ++k) gradient[n * k_extent + k] += dy * x[k];
    }
  }
}

}  // namespace troupe::kernels::reference
