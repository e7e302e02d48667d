// kCombine, kCombineGrad: the weighted sum of what a token's experts made. Dropped choices add
// nothing and their weights have no gradient.
#include "model/ops/kinds.h"
#include "model/ops/placement_rule.h"
#include "model/program/derivative.h"

namespace troupe::model {
namespace {

StatusOr<std::vector<ValueType>> Infer(const MeshView& mesh, const Attributes& attributes,
                                       Inputs in) {
  const Value &x = *in[0], &slots = *in[1], &weights = *in[2];
  TROUPE_RETURN_IF_ERROR(ExpectType(slots, DType::kInt32, 2));
  TROUPE_RETURN_IF_ERROR(ExpectType(weights, DType::kFloat32, 2));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(slots, 0, weights, 0));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(slots, 1, weights, 1));
  TROUPE_ASSIGN_OR_RETURN(
      const ShardedLetters letters,
      ShardedLetters::Of({{&x, "rh"}, {&slots, "rk", false}, {&weights, "rk"}}, "hk"));
  return std::vector<ValueType>{{x.dtype, {slots.dims[0], x.dims[1]}, letters.Output("rh"), {}}};
}

StatusOr<std::vector<ValueType>> InferGrad(const MeshView& mesh, const Attributes& attributes,
                                           Inputs in) {
  const Value &dy = *in[0], &x = *in[1], &slots = *in[2], &weights = *in[3];
  TROUPE_RETURN_IF_ERROR(ExpectType(x, dy.dtype, 2));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(dy, 0, slots, 0));
  TROUPE_ASSIGN_OR_RETURN(
      const ShardedLetters letters,
      ShardedLetters::Of({{&dy, "rh"}, {&x, "rh"}, {&slots, "rk", false}, {&weights, "rk"}}, "hk"));
  return std::vector<ValueType>{{x.dtype, x.dims, letters.Output("rh"), {}},
                                {DType::kFloat32, weights.dims, letters.Output("rk"), {}}};
}

Status Differentiate(const Op& op, GradientContext& context) {
  const ValueId x = op.inputs[0], slots = op.inputs[1], weights = op.inputs[2];
  return context.Emit(OpKind::kCombineGrad, op.attributes,
                      {context.GradientOf(op.outputs[0]), x, slots, weights}, {x, weights});
}

}  // namespace

OpRules CombineRules() { return {.infer = Infer, .differentiate = Differentiate}; }
OpRules CombineGradRules() { return {.infer = InferGrad}; }

}  // namespace troupe::model
