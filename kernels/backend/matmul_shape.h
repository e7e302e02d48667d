// The three matmuls of a linear layer.
//
//   forward        c[R,N]  = x[R,K] wᵀ        a = x,  b = w[N,K]
//   input gradient c[R,K]  = dy[R,N] w        a = dy, b = w[N,K]
//   weight gradient c[N,K] (+)= dyᵀ x, float32  a = dy, b = x
#ifndef TROUPE_KERNELS_BACKEND_MATMUL_SHAPE_H_
#define TROUPE_KERNELS_BACKEND_MATMUL_SHAPE_H_

#include <compare>
#include <cstdint>

#include "kernels/backend/arguments.h"
#include "model/program/program.h"

namespace troupe::kernels {

// The scales of FP8 operands. An FP8 matmul computes a bᵀ for every kind; its output has the dtype
// of the bfloat16 matmul.
enum class Float8Scaling : uint8_t { kNone, kWhole, kBlocks };

struct MatmulShape {
  MatmulKind kind;
  bool bfloat16;
  int64_t rows, k, n;
  Float8Scaling float8 = Float8Scaling::kNone;
  auto operator<=>(const MatmulShape&) const = default;
};

// The same matmul with bfloat16 operands.
inline MatmulShape OfBFloat16(MatmulShape shape) {
  shape.float8 = Float8Scaling::kNone;
  return shape;
}

// The shape of a kMatmul or of one of its gradients.
inline MatmulShape MatmulShapeOf(const model::Program& program, const model::Op& op) {
  const model::Value& a = program.value(op.inputs[0]);
  const model::Value& b = program.value(op.inputs[1]);
  const bool bfloat16 = a.dtype == model::DType::kBFloat16;
  const int64_t rows = a.dims[0].local;
  if (model::IsFloat8(a.dtype)) {
    const Float8Scaling float8 = program.value(op.inputs[2]).dims.size() == 1
                                     ? Float8Scaling::kWhole
                                     : Float8Scaling::kBlocks;
    const int64_t other = b.dims[0].local, depth = a.dims[1].local;
    switch (op.kind) {
      case model::OpKind::kMatmul:
        return {MatmulKind::kForward, true, rows, depth, other, float8};
      case model::OpKind::kMatmulGradInput:
        return {MatmulKind::kInputGradient, true, rows, other, depth, float8};
      default:
        return {MatmulKind::kWeightGradient, true, depth, other, rows, float8};
    }
  }
  if (op.kind == model::OpKind::kMatmulGradWeight) {
    return {MatmulKind::kWeightGradient, bfloat16, rows, b.dims[1].local, a.dims[1].local};
  }
  const MatmulKind kind =
      op.kind == model::OpKind::kMatmul ? MatmulKind::kForward : MatmulKind::kInputGradient;
  return {kind, bfloat16, rows, b.dims[1].local, b.dims[0].local};
}

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_BACKEND_MATMUL_SHAPE_H_
