// kPermute, kPermuteGrad: copies rows of tokens into a buffer sorted by expert, one for each choice
// that is not dropped, and sums their gradients back. If slots cover each rank's own experts
// (kRouterSlots), rows are Copied and the gradient is a partial sum.
#include "model/ops/kinds.h"
#include "model/ops/placement_rule.h"
#include "model/program/derivative.h"

namespace troupe::model {
namespace {

const AxisPlacement kOwnChoices = Shard(1, ShardHow::kExperts);
const AxisPlacement kOwnRows = Shard(0, ShardHow::kExperts);

StatusOr<std::vector<ValueType>> Infer(const MeshView& mesh, const Attributes& attributes,
                                       Inputs in) {
  TROUPE_RETURN_IF_ERROR(ExpectType(*in[1], DType::kInt32, 2));
  const uint8_t own = SelectedAxes(*in[1]);
  TROUPE_ASSIGN_OR_RETURN(const Value x, Apart(*in[0], own, Copied()));
  TROUPE_ASSIGN_OR_RETURN(const Value slots, Apart(*in[1], own, kOwnChoices));
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters letters,
                          ShardedLetters::Of({{&x, "rh"}, {&slots, "rk", false}}, "hk"));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(x, 0, slots, 0));
  const int64_t rows = std::get<RouterAttributes>(attributes).slots;
  return std::vector<ValueType>{
      {x.dtype,
       {{"slots", rows * (x.dims[0].global / x.dims[0].local), rows}, x.dims[1]},
       With(letters.Output("rh"), own, kOwnRows),
       {}}};
}

StatusOr<std::vector<ValueType>> InferGrad(const MeshView& mesh, const Attributes& attributes,
                                           Inputs in) {
  TROUPE_RETURN_IF_ERROR(ExpectType(*in[1], DType::kInt32, 2));
  const uint8_t own = SelectedAxes(*in[1]);
  TROUPE_ASSIGN_OR_RETURN(const Value dy, Apart(*in[0], own, kOwnRows));
  TROUPE_ASSIGN_OR_RETURN(const Value slots, Apart(*in[1], own, kOwnChoices));
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters letters,
                          ShardedLetters::Of({{&dy, "rh"}, {&slots, "rk", false}}, "hk"));
  return std::vector<ValueType>{
      {dy.dtype, {slots.dims[0], dy.dims[1]}, With(letters.Output("rh"), own, PartialSum()), {}}};
}

Status Differentiate(const Op& op, GradientContext& context) {
  return context.Emit(OpKind::kPermuteGrad, op.attributes,
                      {context.GradientOf(op.outputs[0]), op.inputs[1]}, {op.inputs[0]});
}

}  // namespace

OpRules PermuteRules() { return {.infer = Infer, .differentiate = Differentiate}; }
OpRules PermuteGradRules() { return {.infer = InferGrad}; }

}  // namespace troupe::model
