// kAllToAll: exchanges rows among the ranks of `expert`, or of `expert` and `tensor` together if
// experts are spread over both, and converts Shard(0) by token ↔ Shard(0) by expert on each of
// these axes. Its derivative is its inverse. With counts only routed rows are sent; the counts
// themselves are exchanged in equal blocks first.
#include "model/ops/kinds.h"
#include "model/ops/placement_rule.h"
#include "model/program/derivative.h"

namespace troupe::model {
namespace {

const AxisPlacement kByToken = Shard(0), kByExpert = Shard(0, ShardHow::kExperts);

// Checks that `value` has placement `due` on every axis of the group.
Status ExpectOnGroup(const CollectiveGroup& group, const Value& value, AxisPlacement due) {
  for (const Axis axis : {Axis::kExpert, Axis::kTensor}) {
    if (!(group.axes & GroupOf(axis).axes) || value.placement[axis] == due) continue;
    return InvalidArgument("input {} is {} on axis {}, must be {}", value.name,
                           ToText(value.placement[axis]), Name(axis), ToText(due));
  }
  return OkStatus();
}

StatusOr<std::vector<ValueType>> Infer(const MeshView& mesh, const Attributes& attributes,
                                       Inputs in) {
  const auto& collective = std::get<RoutedRowsAttributes>(attributes);
  const CollectiveGroup& group = collective.group;
  const auto both = static_cast<uint8_t>(GroupOf(Axis::kExpert).axes | GroupOf(Axis::kTensor).axes);
  if (group != GroupOf(Axis::kExpert) &&
      group != CollectiveGroup{CollectiveGroup::Kind::kAxes, both}) {
    return InvalidArgument("group {} is neither expert nor expert+tensor", ToText(group));
  }
  const Value& x = *in[0];
  const bool leaves_token = x.placement[Axis::kExpert] == kByToken;
  const AxisPlacement before = leaves_token ? kByToken : kByExpert;
  const AxisPlacement after = leaves_token ? kByExpert : kByToken;
  TROUPE_RETURN_IF_ERROR(ExpectOnGroup(group, x, before));
  ValueType type = {x.dtype, x.dims, x.placement, x.segments};
  for (const Axis axis : {Axis::kExpert, Axis::kTensor}) {
    if (group.axes & GroupOf(axis).axes) type.placement[axis] = after;
  }
  if (in.size() == 1) {
    if (x.dims.size() != 1 || x.dims[0].local % GroupSize(mesh, group) != 0) {
      return InvalidArgument("input {} is not split into {} equal blocks", x.name,
                             GroupSize(mesh, group));
    }
    return std::vector<ValueType>{std::move(type)};
  }
  const Value &sent = *in[1], &received = *in[2];
  TROUPE_RETURN_IF_ERROR(ExpectType(sent, DType::kInt32, 1));
  TROUPE_RETURN_IF_ERROR(ExpectType(received, DType::kInt32, 1));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(sent, 0, received, 0));
  TROUPE_RETURN_IF_ERROR(ExpectOnGroup(group, sent, before));
  TROUPE_RETURN_IF_ERROR(ExpectOnGroup(group, received, after));
  if (x.dims.size() != 2 || x.dims[0].local != collective.rows_in) {
    return InvalidArgument("input {} has {} rows, must have {}", x.name, x.dims[0].local,
                           collective.rows_in);
  }
  type.dims[0] = {"slots", collective.rows_out * (x.dims[0].global / x.dims[0].local),
                  collective.rows_out};
  return std::vector<ValueType>{std::move(type)};
}

Status Differentiate(const Op& op, GradientContext& context) {
  auto inverse = std::get<RoutedRowsAttributes>(op.attributes);
  std::swap(inverse.rows_in, inverse.rows_out);
  return context.Emit(OpKind::kAllToAll, inverse,
                      {context.GradientOf(op.outputs[0]), op.inputs[2], op.inputs[1]},
                      {op.inputs[0]});
}

}  // namespace

OpRules AllToAllRules() {
  return {.infer = Infer,
          .differentiate = Differentiate,
          .in_place_input = 0,
          .collective = CollectiveRules{CollectivePattern::kExchange, /*begins_early=*/true}};
}

}  // namespace troupe::model
