// Conversions between placements: kCopy Replicated → Copied (no traffic) and kAllReduce Partial →
// Replicated are each other's derivative. kCast copies parameters into another dtype.
#include "model/ops/kinds.h"
#include "model/ops/placement_rule.h"
#include "model/program/derivative.h"
#include "model/program/shared_heads.h"

namespace troupe::model {
namespace {

// Changes the placement on the axes of `group` from `due` to `gives`.
StatusOr<ValueType> Convert(const CollectiveGroup& group, const Value& x, AxisPlacement due,
                            AxisPlacement gives) {
  ValueType type = {x.dtype, x.dims, x.placement, x.segments};
  if (group.kind == CollectiveGroup::Kind::kAll)
    return InvalidArgument("group all has no placement");
  if (group.part != CollectiveGroup::Part::kWhole) {
    return InvalidArgument("group {} is only a part of an axis", ToText(group));
  }
  for (int a = 1; a < kNumAxes; ++a) {
    const AxisPlacement& placement = x.placement.axes[a];
    if (group.kind == CollectiveGroup::Kind::kAxes && (group.axes & (1u << a))) {
      if (placement != due) {
        return InvalidArgument("input {} is {} on axis {}, must be {}", x.name, ToText(placement),
                               Name(static_cast<Axis>(a)), ToText(due));
      }
      type.placement.axes[a] = gives;
    }
  }
  return type;
}

bool IsOfSharedHeads(const CollectiveGroup& group) {
  return group.axes == GroupOf(Axis::kTensor).axes && group.part == CollectiveGroup::Part::kWithin;
}

// Converts between heads shared by the ranks of each run of tensor and as many heads as ranks, with
// each head repeated for every rank of its run. The local slice does not change; only the global
// shape differs. The gradient of a shared head is the sum over its repetitions.
StatusOr<ValueType> ConvertSharedHeads(const MeshView& mesh, const CollectiveGroup& group,
                                       const Value& x, bool repeats) {
  const int ranks = mesh.degrees[Axis::kTensor];
  if (group.run < 2 || ranks % group.run != 0) {
    return InvalidArgument("group {} has runs of {}, into which {} tensor ranks cannot be split",
                           ToText(group), group.run, ranks);
  }
  const AxisPlacement each = Shard(0, ShardHow::kSegments);
  const AxisPlacement shared = SharedHeads(group.run);
  const AxisPlacement& due = repeats ? shared : each;
  if (x.placement[Axis::kTensor] != due) {
    return InvalidArgument("input {} is {} on axis tensor, must be {}", x.name,
                           ToText(x.placement[Axis::kTensor]), ToText(due));
  }
  ValueType type = {x.dtype, x.dims, x.placement, x.segments};
  type.placement[Axis::kTensor] = repeats ? each : shared;
  const auto scale = [&](int64_t extent) {
    return repeats ? extent * group.run : extent / group.run;
  };
  type.dims[0].global = scale(type.dims[0].global);
  for (Segment& segment : type.segments) segment.global = scale(segment.global);
  return type;
}

StatusOr<std::vector<ValueType>> InferCopy(const MeshView& mesh, const Attributes& attributes,
                                           Inputs in) {
  const CollectiveGroup& group = std::get<CollectiveAttributes>(attributes).group;
  TROUPE_ASSIGN_OR_RETURN(ValueType type,
                          IsOfSharedHeads(group)
                              ? ConvertSharedHeads(mesh, group, *in[0], /*repeats=*/true)
                              : Convert(group, *in[0], Replicated(), Copied()));
  return std::vector<ValueType>{std::move(type)};
}

StatusOr<std::vector<ValueType>> InferAllReduce(const MeshView& mesh, const Attributes& attributes,
                                                Inputs in) {
  const auto& collective = std::get<AllReduceAttributes>(attributes);
  const AxisPlacement due = collective.reduce == ReduceKind::kMax ? PartialMax() : PartialSum();
  std::vector<ValueType> types;
  for (const Value* x : in) {
    TROUPE_RETURN_IF_ERROR(CheckWire(collective.wire, collective.reduce, *x));
    TROUPE_ASSIGN_OR_RETURN(ValueType type,
                            IsOfSharedHeads(collective.group) && due == PartialSum()
                                ? ConvertSharedHeads(mesh, collective.group, *x, /*repeats=*/false)
                                : Convert(collective.group, *x, due, Replicated()));
    types.push_back(std::move(type));
  }
  return types;
}

StatusOr<std::vector<ValueType>> InferCast(const MeshView& mesh, const Attributes& attributes,
                                           Inputs in) {
  const Value& x = *in[0];
  if (x.dtype == DType::kBFloat16) {
    return std::vector<ValueType>{{DType::kFloat32, x.dims, x.placement, x.segments}};
  }
  TROUPE_RETURN_IF_ERROR(ExpectType(x, DType::kFloat32, x.dims.size()));
  return std::vector<ValueType>{{DType::kBFloat16, x.dims, x.placement, x.segments}};
}

Status DifferentiateCopy(const Op& op, GradientContext& context) {
  return context.Emit(OpKind::kAllReduce, AllReduceAttributes{CollectiveOf(op)},
                      {context.GradientOf(op.outputs[0])}, {op.inputs[0]});
}

Status DifferentiateAllReduce(const Op& op, GradientContext& context) {
  if (ReduceOf(op) == ReduceKind::kMax) return OkStatus();
  return context.Emit(OpKind::kCopy, CollectiveOf(op), {context.GradientOf(op.outputs[0])},
                      {op.inputs[0]});
}

}  // namespace

OpRules CopyRules() {
  return {.infer = InferCopy, .differentiate = DifferentiateCopy, .in_place_input = 0};
}
OpRules AllReduceRules() {
  return {.infer = InferAllReduce,
          .differentiate = DifferentiateAllReduce,
          .in_place_input = 0,
          .collective = CollectiveRules{CollectivePattern::kAllReduce, /*begins_early=*/true}};
}
OpRules CastRules() { return {.infer = InferCast}; }

}  // namespace troupe::model
