#include "kernels/cuda/libraries/matmul_layout.h"

namespace troupe::kernels::cuda {

MatmulLayout LayoutOf(const MatmulShape& shape) {
  const int64_t rows = shape.rows, k = shape.k, n = shape.n;
  // Row-major [extent, width] in memory is column-major [width, extent].
  const ColumnMajor x = {k, rows, k}, dy = {n, rows, n}, w = {k, n, k};
  if (shape.float8 != Float8Scaling::kNone) {
    switch (shape.kind) {
      case MatmulKind::kForward:
        return {n, rows, k, true, false, w, x, dy};
      case MatmulKind::kInputGradient:
        return {k, rows, n, true, false, {n, k, n}, dy, x};
      case MatmulKind::kWeightGradient:
        break;
    }
    return {k, n, rows, true, false, {rows, k, rows}, {rows, n, rows}, w};
  }
  switch (shape.kind) {
    case MatmulKind::kForward:
      return {n, rows, k, true, false, w, x, dy};
    case MatmulKind::kInputGradient:
      return {k, rows, n, false, false, w, dy, x};
    case MatmulKind::kWeightGradient:
      break;
  }
  return {k, n, rows, false, true, x, dy, w};
}

MatmulExtents ExtentsOf(const MatmulShape& shape) {
  const int64_t x = shape.rows * shape.k, dy = shape.rows * shape.n, w = shape.n * shape.k;
  switch (shape.kind) {
    case MatmulKind::kForward:
      return {x, w, dy};
    case MatmulKind::kInputGradient:
      return {dy, w, x};
    case MatmulKind::kWeightGradient:
      break;
  }
  return {dy, x, w};
}

}  // namespace troupe::kernels::cuda
