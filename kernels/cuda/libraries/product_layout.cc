#include "kernels/cuda/libraries/product_layout.h"

namespace troupe::kernels::cuda {

ProductLayout LayoutOf(const ProductShape& shape) {
  const int64_t rows = shape.rows, k = shape.k, n = shape.n;
  // Row-major [extent, width] in memory is column-major [width, extent].
  const ColumnMajor x = {k, rows, k}, dy = {n, rows, n}, w = {k, n, k};
  if (shape.float8 != Float8Scaling::kNone) {
    switch (shape.kind) {
      case ProductKind::kForward:
        return {n, rows, k, true, false, w, x, dy};
      case ProductKind::kInputGradient:
        return {k, rows, n, true, false, {n, k, n}, dy, x};
      case ProductKind::kWeightGradient:
        break;
    }
    return {k, n, rows, true, false, {rows, k, rows}, {rows, n, rows}, w};
  }
  switch (shape.kind) {
    case ProductKind::kForward:
      return {n, rows, k, true, false, w, x, dy};
    case ProductKind::kInputGradient:
      return {k, rows, n, false, false, w, dy, x};
    case ProductKind::kWeightGradient:
      break;
  }
  return {k, n, rows, false, true, x, dy, w};
}

ProductExtents ExtentsOf(const ProductShape& shape) {
  const int64_t x = shape.rows * shape.k, dy = shape.rows * shape.n, w = shape.n * shape.k;
  switch (shape.kind) {
    case ProductKind::kForward:
      return {x, w, dy};
    case ProductKind::kInputGradient:
      return {dy, w, x};
    case ProductKind::kWeightGradient:
      break;
  }
  return {dy, x, w};
}

}  // namespace troupe::kernels::cuda
