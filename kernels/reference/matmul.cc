#include <algorithm>

#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {
namespace {

// Element [row, column] of FP8 operand `index`, multiplied by its scale.
double Scaled(const Operation& operation, int index, int64_t row, int64_t column) {
  const model::Value& scale = operation.Input(index + 2);
  const int64_t rows = operation.Extent(index, 0), columns = operation.Extent(index, 1);
  const double number = operation.inputs[index][row * columns + column];
  if (scale.dims.size() == 1) return number * operation.inputs[index + 2][0];
  const int64_t block_rows = scale.dims[0].local == rows ? 1 : model::kFloat8Block;
  return number * operation.inputs[index + 2][row / block_rows * scale.dims[1].local +
                                              column / model::kFloat8Block];
}

// c[M,N] (+)= a[M,D] b[N,D]ᵀ with FP8 operands.
Status Float8Matmul(const Operation& operation, bool accumulate) {
  const int64_t rows = operation.Extent(0, 0), columns = operation.Extent(1, 0),
                depth = operation.Extent(0, 1);
  for (int64_t m = 0; m < rows; ++m) {
    for (int64_t n = 0; n < columns; ++n) {
      double sum = 0;
      for (int64_t d = 0; d < depth; ++d)
        sum += Scaled(operation, 0, m, d) * Scaled(operation, 1, n, d);
      double& c = operation.outputs[0][m * columns + n];
      c = accumulate ? c + sum : sum;
    }
  }
  return OkStatus();
}

bool IsFloat8(const Operation& operation) { return model::IsFloat8(operation.Input(0).dtype); }

}  // namespace

// y[R,N] = x[R,K] wᵀ, w[N,K].
Status Matmul(const Operation& operation) {
  if (IsFloat8(operation)) return Float8Matmul(operation, false);
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
  return OkStatus();
}

// dx[R,K] = dy[R,N] w.
Status MatmulGradInput(const Operation& operation) {
  if (IsFloat8(operation)) return Float8Matmul(operation, false);
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
  return OkStatus();
}

// dw[N,K] += dyᵀ x.
Status MatmulGradWeight(const Operation& operation) {
  if (IsFloat8(operation)) return Float8Matmul(operation, operation.accumulate);
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
  return OkStatus();
}

}  // namespace troupe::kernels::reference
