// kCombine, kCombineGrad: the weighted sum of the expert outputs of a token. Dropped choices add
// nothing and their weights have no gradient. If slots cover each rank's own experts
// (kRouterSlots), the result is a partial sum and the weights are Copied.
#include "model/ops/kinds.h"
#include "model/ops/placement_rule.h"
#include "model/program/derivative.h"

namespace troupe::model {
namespace {

const AxisPlacement kOwnChoices = Shard(1, ShardHow::kExperts);
const AxisPlacement kOwnRows = Shard(0, ShardHow::kExperts);

StatusOr<std::vector<ValueType>> Infer(const MeshView& mesh, const Attributes& attributes,
                                       Inputs in) {
  const uint8_t own = SelectedAxes(*in[1]);
  TROUPE_ASSIGN_OR_RETURN(const Value x, Apart(*in[0], own, kOwnRows));
  TROUPE_ASSIGN_OR_RETURN(const Value slots, Apart(*in[1], own, kOwnChoices));
  TROUPE_ASSIGN_OR_RETURN(const Value weights, Apart(*in[2], own, Copied()));
  TROUPE_RETURN_IF_ERROR(ExpectType(slots, DType::kInt32, 2));
  TROUPE_RETURN_IF_ERROR(ExpectType(weights, DType::kFloat32, 2));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(slots, 0, weights, 0));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(slots, 1, weights, 1));
  TROUPE_ASSIGN_OR_RETURN(
      const ShardedLetters letters,
      ShardedLetters::Of({{&x, "rh"}, {&slots, "rk", false}, {&weights, "rk"}}, "hk"));
  return std::vector<ValueType>{
      {x.dtype, {slots.dims[0], x.dims[1]}, With(letters.Output("rh"), own, PartialSum()), {}}};
}

StatusOr<std::vector<ValueType>> InferGrad(const MeshView& mesh, const Attributes& attributes,
                                           Inputs in) {
  const uint8_t own = SelectedAxes(*in[2]);
  TROUPE_ASSIGN_OR_RETURN(const Value dy, Apart(*in[0], own, Copied()));
  TROUPE_ASSIGN_OR_RETURN(const Value x, Apart(*in[1], own, kOwnRows));
  TROUPE_ASSIGN_OR_RETURN(const Value slots, Apart(*in[2], own, kOwnChoices));
  TROUPE_ASSIGN_OR_RETURN(const Value weights, Apart(*in[3], own, Copied()));
  TROUPE_RETURN_IF_ERROR(ExpectType(x, dy.dtype, 2));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(dy, 0, slots, 0));
  TROUPE_ASSIGN_OR_RETURN(
      const ShardedLetters letters,
      ShardedLetters::Of({{&dy, "rh"}, {&x, "rh"}, {&slots, "rk", false}, {&weights, "rk"}}, "hk"));
  return std::vector<ValueType>{
      {x.dtype, x.dims, With(letters.Output("rh"), own, kOwnRows), {}},
      {DType::kFloat32, weights.dims, With(letters.Output("rk"), own, PartialSum()), {}}};
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
