// The products of kernels/product_shape.h as a library of column-major matrices has them:
//
//   D[m,n] (+)= op(A) op(B), op(A)[m,k], op(B)[k,n], D[m,n]; op is the matrix or its transpose.
//
// A row-major matrix is the transpose of the column-major one in the same memory, so D is cᵀ, A is b and B is a:
//   forward         cᵀ[N,R] = w xᵀ       w[N,K]: transposed, x: as it lies
//   input gradient  cᵀ[K,R] = wᵀ dyᵀ     both as they lie
//   weight gradient cᵀ[K,N] = xᵀ dy      x as it lies, dy: transposed
//
// Of factors in 8 bits cᵀ = b aᵀ whatever the kind, b: transposed, a as it lies: the one form that Hopper multiplies.
#ifndef TROUPE_KERNELS_CUDA_PRODUCT_LAYOUT_H_
#define TROUPE_KERNELS_CUDA_PRODUCT_LAYOUT_H_

#include <cstdint>

#include "kernels/product_shape.h"

namespace troupe::kernels::cuda {

// A column-major matrix as it lies in memory: element (i, j) at i + j · leading.
struct ColumnMajor {
  int64_t rows, columns, leading;
  bool operator==(const ColumnMajor&) const = default;
};

struct ProductLayout {
  int64_t m, n, k;
  bool transpose_a, transpose_b;
  ColumnMajor a, b, d;  // a: of the product's b; b: of the product's a
};

ProductLayout LayoutOf(const ProductShape& shape);

// Elements of the product's a, b and c.
struct ProductExtents {
  int64_t a, b, c;
};
ProductExtents ExtentsOf(const ProductShape& shape);

// Whether c is float32 whatever the compute dtype.
inline bool HasFloatResult(const ProductShape& shape) {
  return !shape.bfloat16 || shape.kind == ProductKind::kWeightGradient;
}

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_PRODUCT_LAYOUT_H_
