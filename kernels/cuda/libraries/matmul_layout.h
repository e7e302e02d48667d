// The matmuls of kernels/backend/matmul_shape.h in the form of a column-major library:
//
//   D[m,n] (+)= op(A) op(B), op(A)[m,k], op(B)[k,n], D[m,n]; op is the identity or the transpose.
//
// A row-major matrix is the transpose of the column-major one in the same memory, so D is cᵀ, A is
// b and B is a:
//   forward         cᵀ[N,R] = w xᵀ       w[N,K]: transposed, x: as stored
//   input gradient  cᵀ[K,R] = wᵀ dyᵀ     both as stored
//   weight gradient cᵀ[K,N] = xᵀ dy      x as stored, dy: transposed
//
// With FP8 operands cᵀ = b aᵀ for every kind, with b transposed and a as stored: the only form that
// Hopper supports.
#ifndef TROUPE_KERNELS_CUDA_LIBRARIES_MATMUL_LAYOUT_H_
#define TROUPE_KERNELS_CUDA_LIBRARIES_MATMUL_LAYOUT_H_

#include <cstdint>

#include "kernels/backend/matmul_shape.h"

namespace troupe::kernels::cuda {

// A column-major matrix in memory: element (i, j) is at i + j · leading.
struct ColumnMajor {
  int64_t rows, columns, leading;
  bool operator==(const ColumnMajor&) const = default;
};

struct MatmulLayout {
  int64_t m, n, k;
  bool transpose_a, transpose_b;
  ColumnMajor a, b, d;  // a is our operand b, b is our operand a
};

MatmulLayout LayoutOf(const MatmulShape& shape);

// Number of elements of our operands a and b and of the result c.
struct MatmulExtents {
  int64_t a, b, c;
};
MatmulExtents ExtentsOf(const MatmulShape& shape);

// Whether c is float32 regardless of the compute dtype.
inline bool HasFloatResult(const MatmulShape& shape) {
  return !shape.bfloat16 || shape.kind == MatmulKind::kWeightGradient;
}

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_LIBRARIES_MATMUL_LAYOUT_H_
