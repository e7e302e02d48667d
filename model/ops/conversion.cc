// Conversions between placements: kCopy Replicated → Copied (no traffic) and kAllReduce Partial →
// Replicated are each other's derivative. kCast makes compute copies.
#include "model/ops/kinds.h"
#include "model/ops/placement_rule.h"
#include "model/program/derivative.h"

namespace troupe::model {
namespace {

// Changes the axes of `group` from `due` to `gives`.
StatusOr<ValueType> Convert(const CollectiveGroup& group, const Value& x, AxisPlacement due,
                            AxisPlacement gives) {
  ValueType type = {x.dtype, x.dims, x.placement, x.segments};
  if (group.kind == CollectiveGroup::Kind::kAll)
    return InvalidArgument("group all has no placement");
  if (group.part != CollectiveGroup::Part::kWhole) {
    return InvalidArgument("group {} has a part of an axis alone", ToText(group));
  }
  for (int a = 1; a < kNumAxes; ++a) {
    const AxisPlacement& placement = x.placement.axes[a];
    if (group.kind == CollectiveGroup::Kind::kAxes && (group.axes & (1u << a))) {
      if (placement != due) {
        return InvalidArgument("input {} is {} on axis {} where {} is due", x.name,
                               ToText(placement), Name(static_cast<Axis>(a)), ToText(due));
      }
      type.placement.axes[a] = gives;
    }
  }
  return type;
}

StatusOr<std::vector<ValueType>> InferCopy(const MeshView& mesh, const Attributes& attributes,
                                           Inputs in) {
  TROUPE_ASSIGN_OR_RETURN(ValueType type, Convert(std::get<CollectiveAttributes>(attributes).group,
                                                  *in[0], Replicated(), Copied()));
  return std::vector<ValueType>{std::move(type)};
}

StatusOr<std::vector<ValueType>> InferAllReduce(const MeshView& mesh, const Attributes& attributes,
                                                Inputs in) {
  const auto& collective = std::get<CollectiveAttributes>(attributes);
  const AxisPlacement due = collective.reduce == ReduceKind::kMax ? PartialMax() : PartialSum();
  std::vector<ValueType> types;
  for (const Value* x : in) {
    TROUPE_RETURN_IF_ERROR(CheckWire(collective, *x));
    TROUPE_ASSIGN_OR_RETURN(ValueType type, Convert(collective.group, *x, due, Replicated()));
    types.push_back(std::move(type));
  }
  return types;
}

StatusOr<std::vector<ValueType>> InferCast(const MeshView& mesh, const Attributes& attributes,
                                           Inputs in) {
  TROUPE_RETURN_IF_ERROR(ExpectType(*in[0], DType::kFloat32, in[0]->dims.size()));
  return std::vector<ValueType>{{DType::kBFloat16, in[0]->dims, in[0]->placement, in[0]->segments}};
}

Status DifferentiateCopy(const Op& op, GradientContext& context) {
  return context.Emit(OpKind::kAllReduce, op.attributes, {context.GradientOf(op.outputs[0])},
                      {op.inputs[0]});
}

Status DifferentiateAllReduce(const Op& op, GradientContext& context) {
  if (std::get<CollectiveAttributes>(op.attributes).reduce == ReduceKind::kMax) return OkStatus();
  return context.Emit(OpKind::kCopy, op.attributes, {context.GradientOf(op.outputs[0])},
                      {op.inputs[0]});
}

}  // namespace

OpRules CopyRules() {
  return {.infer = InferCopy, .differentiate = DifferentiateCopy, .in_place_input = 0};
}
OpRules AllReduceRules() {
  return {.infer = InferAllReduce, .differentiate = DifferentiateAllReduce, .in_place_input = 0};
}
OpRules CastRules() { return {.infer = InferCast}; }

}  // namespace troupe::model
