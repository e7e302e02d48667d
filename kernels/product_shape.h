// The three products of a linear layer.
//
//   forward        c[R,N]  = x[R,K] wᵀ        a = x,  b = w[N,K]
//   input gradient c[R,K]  = dy[R,N] w        a = dy, b = w[N,K]
//   weight gradient c[N,K] (+)= dyᵀ x, float32  a = dy, b = x
#ifndef TROUPE_KERNELS_PRODUCT_SHAPE_H_
#define TROUPE_KERNELS_PRODUCT_SHAPE_H_

#include <compare>
#include <cstdint>

#include "kernels/arguments.h"
#include "model/program/program.h"

namespace troupe::kernels {

struct ProductShape {
  ProductKind kind;
  bool bfloat16;
  int64_t rows, k, n;
  auto operator<=>(const ProductShape&) const = default;
};

// Of a kMatmul or of one of its gradients.
inline ProductShape ProductShapeOf(const model::Program& program, const model::Op& op) {
  const model::Value& a = program.value(op.inputs[0]);
  const model::Value& b = program.value(op.inputs[1]);
  const bool bfloat16 = a.dtype == model::DType::kBFloat16;
  const int64_t rows = a.dims[0].local;
  if (op.kind == model::OpKind::kMatmulGradWeight) {
    return {ProductKind::kWeightGradient, bfloat16, rows, b.dims[1].local, a.dims[1].local};
  }
  const ProductKind kind = op.kind == model::OpKind::kMatmul ? ProductKind::kForward
                                                             : ProductKind::kInputGradient;
  return {kind, bfloat16, rows, b.dims[1].local, b.dims[0].local};
}

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_PRODUCT_SHAPE_H_
