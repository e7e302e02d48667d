// kRmsNorm, kAddRmsNorm (fused residual), kRmsNormGrad: y = x·rstd·w, rstd = 1/sqrt(mean(x²) + eps)
// per row. The hidden dim must be whole: the norm of a slice is not the norm of the row.
#include "model/ops/kinds.h"
#include "model/ops/placement_rule.h"
#include "model/program/derivative.h"

namespace troupe::model {
namespace {

StatusOr<std::vector<ValueType>> Infer(const MeshView& mesh, const Attributes& attributes,
                                       Inputs in) {
  const Value &x = *in[0], &w = *in[1];
  TROUPE_RETURN_IF_ERROR(ExpectType(w, DType::kFloat32, 1));
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters letters,
                          ShardedLetters::Of({{&x, "rh"}, {&w, "h"}}, "h"));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(x, 1, w, 0));
  return std::vector<ValueType>{{x.dtype, x.dims, letters.Output("rh"), {}},
                                {DType::kFloat32, {x.dims[0]}, letters.Output("r"), {}}};
}

StatusOr<std::vector<ValueType>> InferFused(const MeshView& mesh, const Attributes& attributes,
                                            Inputs in) {
  const Value &a = *in[0], &b = *in[1], &w = *in[2];
  TROUPE_RETURN_IF_ERROR(ExpectType(w, DType::kFloat32, 1));
  TROUPE_RETURN_IF_ERROR(ExpectType(b, a.dtype, 2));
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters letters,
                          ShardedLetters::Of({{&a, "rh"}, {&b, "rh"}, {&w, "h"}}, "h"));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(a, 0, b, 0));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(a, 1, b, 1));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(a, 1, w, 0));
  const ValueType y = {a.dtype, a.dims, letters.Output("rh"), {}};
  return std::vector<ValueType>{y, y, {DType::kFloat32, {a.dims[0]}, letters.Output("r"), {}}};
}

StatusOr<std::vector<ValueType>> InferGrad(const MeshView& mesh, const Attributes& attributes,
                                           Inputs in) {
  const Value &dy = *in[0], &x = *in[1], &w = *in[2], &rstd = *in[3];
  const Value& residual = in.size() > 4 ? *in[4] : dy;
  TROUPE_RETURN_IF_ERROR(ExpectType(w, DType::kFloat32, 1));
  TROUPE_RETURN_IF_ERROR(ExpectType(dy, x.dtype, 2));
  TROUPE_RETURN_IF_ERROR(ExpectType(residual, x.dtype, 2));
  TROUPE_RETURN_IF_ERROR(ExpectType(rstd, DType::kFloat32, 1));
  TROUPE_ASSIGN_OR_RETURN(
      const ShardedLetters letters,
      ShardedLetters::Of({{&dy, "rh"}, {&x, "rh"}, {&w, "h"}, {&rstd, "r"}, {&residual, "rh"}},
                         "h"));
  for (const int dim : {0, 1}) {
    TROUPE_RETURN_IF_ERROR(ExpectSameExtent(dy, dim, x, dim));
    TROUPE_RETURN_IF_ERROR(ExpectSameExtent(residual, dim, x, dim));
  }
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(rstd, 0, x, 0));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(w, 0, x, 1));
  return std::vector<ValueType>{{x.dtype, x.dims, letters.Output("rh"), {}},
                                {DType::kFloat32, w.dims, letters.Output("h"), {}}};
}

Status Differentiate(const Op& op, GradientContext& context) {
  const ValueId x = op.inputs[0], w = op.inputs[1], rstd = op.outputs[1];
  return context.Emit(OpKind::kRmsNormGrad, op.attributes,
                      {context.GradientOf(op.outputs[0]), x, w, rstd}, {x, w});
}

}  // namespace

OpRules RmsNormRules() { return {.infer = Infer, .differentiate = Differentiate}; }
// The fuse pass creates it after differentiation, so it has no derivative.
OpRules AddRmsNormRules() { return {.infer = InferFused}; }
OpRules RmsNormGradRules() { return {.infer = InferGrad, .accumulated_output = 1}; }

}  // namespace troupe::model
