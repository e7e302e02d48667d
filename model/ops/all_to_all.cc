// kAllToAll: rows between the ranks of an axis, Shard(0) by token ↔ Shard(0) by expert. Its
// derivative is its inverse. With counts only what is routed travels; the counts themselves are
// exchanged in equal blocks first.
#include "model/ops/kinds.h"
#include "model/ops/placement_rule.h"
#include "model/program/derivative.h"

namespace troupe::model {
namespace {

StatusOr<std::vector<ValueType>> Infer(const MeshView& mesh, const Attributes& attributes,
                                       Inputs in) {
  const auto& collective = std::get<CollectiveAttributes>(attributes);
  if (collective.group != GroupOf(Axis::kExpert)) {
    return InvalidArgument("group {} is not the expert axis", ToText(collective.group));
  }
  const Value& x = *in[0];
  const AxisPlacement before = x.placement[Axis::kExpert];
  const AxisPlacement by_token = Shard(0), by_expert = Shard(0, ShardHow::kExperts);
  if (before != by_token && before != by_expert) {
    return InvalidArgument("input {} is {} on axis expert where {} or {} is due", x.name,
                           ToText(before), ToText(by_token), ToText(by_expert));
  }
  const AxisPlacement after = before == by_token ? by_expert : by_token;
  ValueType type = {x.dtype, x.dims, x.placement, x.segments};
  type.placement[Axis::kExpert] = after;
  if (in.size() == 1) {
    if (x.dims.size() != 1 || x.dims[0].local % mesh.degrees[Axis::kExpert] != 0) {
      return InvalidArgument("input {} is not cut into {} equal blocks", x.name,
                             mesh.degrees[Axis::kExpert]);
    }
    return std::vector<ValueType>{std::move(type)};
  }
  const Value &sent = *in[1], &received = *in[2];
  TROUPE_RETURN_IF_ERROR(ExpectType(sent, DType::kInt32, 1));
  TROUPE_RETURN_IF_ERROR(ExpectType(received, DType::kInt32, 1));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(sent, 0, received, 0));
  if (sent.placement[Axis::kExpert] != before || received.placement[Axis::kExpert] != after) {
    return InvalidArgument("counts {} and {} are {} and {} on axis expert where {} and {} are due",
                           sent.name, received.name, ToText(sent.placement[Axis::kExpert]),
                           ToText(received.placement[Axis::kExpert]), ToText(before),
                           ToText(after));
  }
  if (x.dims.size() != 2 || x.dims[0].local != collective.rows_in) {
    return InvalidArgument("input {} has {} rows where {} are due", x.name, x.dims[0].local,
                           collective.rows_in);
  }
  type.dims[0] = {"slots", collective.rows_out * (x.dims[0].global / x.dims[0].local),
                  collective.rows_out};
  return std::vector<ValueType>{std::move(type)};
}

Status Differentiate(const Op& op, GradientContext& context) {
  CollectiveAttributes inverse = std::get<CollectiveAttributes>(op.attributes);
  std::swap(inverse.rows_in, inverse.rows_out);
  return context.Emit(OpKind::kAllToAll, inverse,
                      {context.GradientOf(op.outputs[0]), op.inputs[2], op.inputs[1]},
                      {op.inputs[0]});
}

}  // namespace

OpRules AllToAllRules() {
  return {.infer = Infer, .differentiate = Differentiate, .in_place_input = 0};
}

}  // namespace troupe::model
