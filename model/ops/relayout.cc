// kRelayout: converts the rows of each sample that a context rank holds from a head and a tail
// chunk to a contiguous part, or back; the two directions are each other's derivative. Used between
// block families when one balances causal work and the other passes a state along the sample.
#include "model/ops/kinds.h"
#include "model/program/derivative.h"

namespace troupe::model {
namespace {

StatusOr<std::vector<ValueType>> Infer(const MeshView& mesh, const Attributes& attributes,
                                       Inputs in) {
  const auto& relayout = std::get<RelayoutAttributes>(attributes);
  const Value& x = *in[0];
  if (!(relayout.group == GroupOf(Axis::kContext))) {
    return InvalidArgument("rows of input {} are moved over axis context only, not {}", x.name,
                           ToText(relayout.group));
  }
  const auto rows_in = [](ChunkLayout layout) {
    return Shard(0, layout == ChunkLayout::kHeadTail ? ShardHow::kHeadTail : ShardHow::kContiguous);
  };
  const AxisPlacement due = rows_in(relayout.from());
  if (x.placement[Axis::kContext] != due) {
    return InvalidArgument("input {} is {} on axis context, must be {}", x.name,
                           ToText(x.placement[Axis::kContext]), ToText(due));
  }
  // Otherwise the rows to send would depend on the tensor rank.
  const AxisPlacement& tensor = x.placement[Axis::kTensor];
  if (tensor.kind == PlacementKind::kShard && tensor.dim == 0) {
    return InvalidArgument(
        "input {} is {} on axis tensor, but all rows of a context rank must be here", x.name,
        ToText(tensor));
  }
  if (relayout.samples <= 0 || x.dims[0].local % (2 * relayout.samples) != 0) {
    return InvalidArgument("input {} has {} rows, not two equal chunks of each of {} samples",
                           x.name, x.dims[0].local, relayout.samples);
  }
  ValueType type = {x.dtype, x.dims, x.placement, x.segments};
  type.placement[Axis::kContext] = rows_in(relayout.to());
  return std::vector<ValueType>{std::move(type)};
}

Status Differentiate(const Op& op, GradientContext& context) {
  auto back = std::get<RelayoutAttributes>(op.attributes);
  back.to_head_tail = !back.to_head_tail;
  return context.Emit(OpKind::kRelayout, back, {context.GradientOf(op.outputs[0])}, {op.inputs[0]});
}

// The share of this rank's two chunks of each sample that is sent to other ranks.
double MovedShare(const Op& op, const MeshView& mesh) {
  const auto& relayout = std::get<RelayoutAttributes>(op.attributes);
  const int ranks = mesh.degrees[Axis::kContext], rank = mesh.coordinates[Axis::kContext];
  double moved = 0;
  for (const int place : {0, 1}) {
    const int chunk = ChunkAt(relayout.from(), ranks, rank, place);
    if (RankOfChunk(relayout.to(), ranks, chunk) != rank) moved += 0.5;
  }
  return moved;
}

}  // namespace

OpRules RelayoutRules() {
  return {.infer = Infer,
          .differentiate = Differentiate,
          .collective =
              CollectiveRules{.pattern = CollectivePattern::kExchange, .sent_share = MovedShare}};
}

}  // namespace troupe::model
