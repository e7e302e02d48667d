// Conversions between whole and sharded rows (dim 0). kReduceScatter Partial(sum) → Shard and
// kAllGather Shard → Copied are each other's derivative; kAllGather Shard → Replicated is for
// values without a gradient. By default blocks are balanced: sizes differ by at most one and may be
// 0; RowCut selects larger units or a single owner. kGatherRouted and kScatterRouted do the same
// for routed rows, whose numbers are run-time counts.
#include "model/ops/kinds.h"
#include "model/ops/placement_rule.h"
#include "model/program/derivative.h"

namespace troupe::model {
namespace {

// The placement of one side of a conversion, given as `whole` for an undivided axis, if the group
// is a part of an axis with runs.
AxisPlacement OnRuns(const CollectiveGroup& group, AxisPlacement whole, AxisPlacement other_side) {
  // The ranks at the same position of their runs share a slice: each holds a part of it, or all
  // hold the whole.
  if (group.part == CollectiveGroup::Part::kAcross) return ShardInRuns(0, group.run, whole.kind);
  // The group is one run; every run has the same placement.
  return whole == Shard(0) ? ShardInRuns(0, group.run, other_side.kind) : whole;
}

// The placement of `x` with every axis of the group changed from `due` to `gives`.
StatusOr<Placement> Convert(const MeshView& mesh, const CollectiveGroup& group, const Value& x,
                            AxisPlacement due, AxisPlacement gives) {
  if (group.kind != CollectiveGroup::Kind::kAxes || group.axes == 0) {
    return InvalidArgument("group {} has no blocks", ToText(group));
  }
  const bool of_runs = group.part != CollectiveGroup::Part::kWhole;
  const int shards = mesh.degrees[Axis::kDataShard];
  if (of_runs && (!(group.axes & GroupOf(Axis::kDataShard).axes) || group.run < 1 ||
                  shards % group.run != 0)) {
    return InvalidArgument(
        "group {} has runs of {}, into which {} data_shard ranks cannot be split", ToText(group),
        group.run, shards);
  }
  if (x.dims.empty()) return InvalidArgument("input {} has no dim that could be sharded", x.name);
  Placement placement = x.placement;
  for (int a = 1; a < kNumAxes; ++a) {
    if (!(group.axes & (1u << a))) continue;
    const bool has_runs = of_runs && static_cast<Axis>(a) == Axis::kDataShard;
    const AxisPlacement due_here = has_runs ? OnRuns(group, due, gives) : due;
    if (placement.axes[a] != due_here) {
      return InvalidArgument("input {} is {} on axis {}, must be {}", x.name,
                             ToText(placement.axes[a]), Name(static_cast<Axis>(a)),
                             ToText(due_here));
    }
    placement.axes[a] = has_runs ? OnRuns(group, gives, due) : gives;
  }
  return placement;
}

// Checks that the parts, and the blocks of each part, are equal.
Status CheckParts(int row_parts, const Value& x, int64_t rows, int ranks) {
  if (row_parts == 1) return OkStatus();
  if (row_parts > 1 && rows % (int64_t{row_parts} * ranks) == 0) return OkStatus();
  return InvalidArgument("{} rows of {} are not a multiple of {} parts × {} ranks", rows, x.name,
                         row_parts, ranks);
}

Status CheckCut(const RowCut& cut, int row_parts, const Value& x, int64_t rows, int ranks) {
  if (cut.owner >= ranks || cut.unit < 1) {
    return InvalidArgument(
        "the {} rows of {} cannot be split in units of {} over {} ranks with owner {}", rows,
        x.name, cut.unit, ranks, cut.owner);
  }
  if (cut == RowCut() || row_parts == 1) return OkStatus();
  return InvalidArgument("{} is sharded in {} parts and in another way too", x.name, row_parts);
}

StatusOr<std::vector<ValueType>> InferReduceScatter(const MeshView& mesh,
                                                    const Attributes& attributes, Inputs in) {
  const auto& collective = std::get<ReduceScatterAttributes>(attributes);
  const Value& x = *in[0];
  TROUPE_RETURN_IF_ERROR(CheckWire(collective.wire, ReduceKind::kSum, x));
  ValueType type = {x.dtype, x.dims, {}, {}};
  TROUPE_ASSIGN_OR_RETURN(type.placement, Convert(mesh, collective.group, x, PartialSum(),
                                                  Shard(0, HowOfParts(collective.row_parts))));
  const int ranks = GroupSize(mesh, collective.group);
  TROUPE_RETURN_IF_ERROR(CheckParts(collective.row_parts, x, x.dims[0].local, ranks));
  TROUPE_RETURN_IF_ERROR(CheckCut(collective.cut, collective.row_parts, x, x.dims[0].local, ranks));
  type.dims[0].local =
      collective.cut.Of(x.dims[0].local, ranks, IndexInGroup(mesh, collective.group)).size();
  return std::vector<ValueType>{std::move(type)};
}

StatusOr<std::vector<ValueType>> InferAllGather(const MeshView& mesh, const Attributes& attributes,
                                                Inputs in) {
  const auto& collective = std::get<AllGatherAttributes>(attributes);
  const Value& x = *in[0];
  ValueType type = {x.dtype, x.dims, {}, collective.segments};
  TROUPE_ASSIGN_OR_RETURN(
      type.placement, Convert(mesh, collective.group, x, Shard(0, HowOfParts(collective.row_parts)),
                              collective.replicated ? Replicated() : Copied()));
  const int ranks = GroupSize(mesh, collective.group);
  int64_t& extent = type.dims[0].local;
  extent = collective.extent != 0 ? collective.extent : extent * ranks;
  TROUPE_RETURN_IF_ERROR(CheckParts(collective.row_parts, x, extent, ranks));
  TROUPE_RETURN_IF_ERROR(CheckCut(collective.cut, collective.row_parts, x, extent, ranks));
  const Range own = collective.cut.Of(extent, ranks, IndexInGroup(mesh, collective.group));
  if (own.size() != x.dims[0].local) {
    return InvalidArgument("input {} has {} rows, but this rank's block of {} has {}", x.name,
                           x.dims[0].local, extent, own.size());
  }
  return std::vector<ValueType>{std::move(type)};
}

StatusOr<std::vector<ValueType>> InferRouted(const MeshView& mesh,
                                             const RoutedRowsAttributes& collective, Inputs in,
                                             AxisPlacement due, AxisPlacement gives) {
  const Value &x = *in[0], &counts = *in[1];
  TROUPE_RETURN_IF_ERROR(ExpectType(counts, DType::kInt32, 1));
  ValueType type = {x.dtype, x.dims, {}, {}};
  TROUPE_ASSIGN_OR_RETURN(type.placement, Convert(mesh, collective.group, x, due, gives));
  TROUPE_RETURN_IF_ERROR(
      Convert(mesh, collective.group, counts, Replicated(), Replicated()).status());
  const int ranks = GroupSize(mesh, collective.group);
  if (x.dims.size() != 2 || x.dims[0].local != collective.rows_in ||
      counts.dims[0].local % ranks != 0) {
    return InvalidArgument(
        "input {} has {} rows and {} has {} counts, must have {} rows and counts of {} ranks",
        x.name, x.dims[0].local, counts.name, counts.dims[0].local, collective.rows_in, ranks);
  }
  type.dims[0] = {"slots", collective.rows_out * (x.dims[0].global / x.dims[0].local),
                  collective.rows_out};
  return std::vector<ValueType>{std::move(type)};
}

StatusOr<std::vector<ValueType>> InferGatherRouted(const MeshView& mesh,
                                                   const Attributes& attributes, Inputs in) {
  return InferRouted(mesh, std::get<RoutedRowsAttributes>(attributes), in, Shard(0), Copied());
}

StatusOr<std::vector<ValueType>> InferScatterRouted(const MeshView& mesh,
                                                    const Attributes& attributes, Inputs in) {
  return InferRouted(mesh, std::get<RoutedRowsAttributes>(attributes), in, PartialSum(), Shard(0));
}

Status DifferentiateRouted(const Op& op, GradientContext& context) {
  auto inverse = std::get<RoutedRowsAttributes>(op.attributes);
  std::swap(inverse.rows_in, inverse.rows_out);
  const OpKind kind =
      op.kind == OpKind::kGatherRouted ? OpKind::kScatterRouted : OpKind::kGatherRouted;
  return context.Emit(kind, inverse, {context.GradientOf(op.outputs[0]), op.inputs[1]},
                      {op.inputs[0]});
}

Status DifferentiateReduceScatter(const Op& op, GradientContext& context) {
  const auto& scatter = std::get<ReduceScatterAttributes>(op.attributes);
  const Value& whole = context.ValueOf(op.inputs[0]);
  AllGatherAttributes gather = {CollectiveOf(op)};
  gather.cut = scatter.cut;
  gather.row_parts = scatter.row_parts;
  gather.extent = whole.dims[0].local;
  gather.segments = whole.segments;
  return context.Emit(OpKind::kAllGather, gather, {context.GradientOf(op.outputs[0])},
                      {op.inputs[0]});
}

Status DifferentiateAllGather(const Op& op, GradientContext& context) {
  const auto& gather = std::get<AllGatherAttributes>(op.attributes);
  if (gather.replicated) {
    return Internal("the gradient of {}, gathered as Replicated, would be a slice",
                    context.ValueOf(op.inputs[0]).name);
  }
  ReduceScatterAttributes scatter = {CollectiveOf(op)};
  scatter.row_parts = gather.row_parts;
  return context.Emit(OpKind::kReduceScatter, scatter, {context.GradientOf(op.outputs[0])},
                      {op.inputs[0]});
}

}  // namespace

OpRules ReduceScatterRules() {
  return {.infer = InferReduceScatter,
          .differentiate = DifferentiateReduceScatter,
          .collective = CollectiveRules{CollectivePattern::kReduceScatter, /*begins_early=*/true}};
}
OpRules AllGatherRules() {
  return {.infer = InferAllGather,
          .differentiate = DifferentiateAllGather,
          .collective = CollectiveRules{CollectivePattern::kGather, /*begins_early=*/true}};
}

OpRules GatherRoutedRules() {
  return {.infer = InferGatherRouted,
          .differentiate = DifferentiateRouted,
          .collective = CollectiveRules{CollectivePattern::kGather}};
}
OpRules ScatterRoutedRules() {
  return {.infer = InferScatterRouted,
          .differentiate = DifferentiateRouted,
          .collective = CollectiveRules{CollectivePattern::kReduceScatter}};
}

}  // namespace troupe::model
