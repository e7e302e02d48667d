// kShift: moves the slices of a value that is sharded over an axis along the ring of the axis:
// Shard → Shard owned by the rank `shift` places before. The derivative shifts back.
#include "model/ops/kinds.h"
#include "model/program/derivative.h"

namespace troupe::model {
namespace {

StatusOr<std::vector<ValueType>> Infer(const MeshView& mesh, const Attributes& attributes,
                                       Inputs in) {
  const auto& collective = std::get<ShiftAttributes>(attributes);
  const Value& x = *in[0];
  if (!(collective.group == GroupOf(Axis::kContext))) {
    return InvalidArgument("input {} is shifted over axis context only, not {}", x.name,
                           ToText(collective.group));
  }
  ValueType type = {x.dtype, x.dims, x.placement, x.segments};
  AxisPlacement& placement = type.placement[Axis::kContext];
  if (placement.kind != PlacementKind::kShard) {
    return InvalidArgument("input {} is {} on axis context, must be sharded", x.name,
                           ToText(placement));
  }
  const int ranks = mesh.degrees[Axis::kContext];
  placement.shift =
      static_cast<int16_t>(((placement.shift + collective.shift) % ranks + ranks) % ranks);
  return std::vector<ValueType>{std::move(type)};
}

Status Differentiate(const Op& op, GradientContext& context) {
  auto back = std::get<ShiftAttributes>(op.attributes);
  back.shift = -back.shift;
  return context.Emit(OpKind::kShift, back, {context.GradientOf(op.outputs[0])}, {op.inputs[0]});
}

// A rank sends its whole slice to one other rank.
double SendsItsSlice(const Op& op, const MeshView& mesh) { return 1.0; }

}  // namespace

OpRules ShiftRules() {
  return {.infer = Infer,
          .differentiate = Differentiate,
          .collective =
              CollectiveRules{CollectivePattern::kExchange, /*begins_early=*/true, SendsItsSlice}};
}

}  // namespace troupe::model
