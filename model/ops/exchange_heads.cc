// kExchangeHeads: exchanges rows (dim 0) sharded over the context axis against columns (the last
// dim) by whole heads, and back. The two directions are each other's derivative. In between every
// rank has all tokens of its heads.
#include "model/ops/kinds.h"
#include "model/ops/placement_rule.h"
#include "model/program/derivative.h"

namespace troupe::model {
namespace {

// The extent after splitting `extent` columns, in heads of `unit`, into `ranks` equal parts, or
// after joining the parts.
StatusOr<int64_t> Exchanged(const std::string& name, int64_t extent, int64_t unit, int ranks,
                            bool to_rows) {
  if (unit <= 0 || extent % (to_rows ? unit : unit * ranks) != 0) {
    return InvalidArgument("input {} has {} columns, not a multiple of {} heads of {}", name,
                           extent, to_rows ? 1 : ranks, unit);
  }
  return to_rows ? extent * ranks : extent / ranks;
}

StatusOr<std::vector<ValueType>> Infer(const MeshView& mesh, const Attributes& attributes,
                                       Inputs in) {
  const auto& exchange = std::get<ExchangeHeadsAttributes>(attributes);
  const Value& x = *in[0];
  if (!(exchange.group == GroupOf(Axis::kContext)) || x.dims.size() != 2) {
    return InvalidArgument("rows and columns of input {} are exchanged over axis context only",
                           x.name);
  }
  const AxisPlacement rows = Shard(0, ShardHow::kHeadTail);
  const AxisPlacement columns =
      Shard(1, x.segments.empty() ? ShardHow::kContiguous : ShardHow::kSegments);
  const AxisPlacement& due = exchange.to_rows ? columns : rows;
  const AxisPlacement& is = x.placement[Axis::kContext];
  if (is != due) {
    return InvalidArgument("input {} is {} on axis context, must be {}", x.name, ToText(is),
                           ToText(due));
  }
  const int ranks = mesh.degrees[Axis::kContext];
  ValueType type = {x.dtype, x.dims, x.placement, x.segments};
  type.placement[Axis::kContext] = exchange.to_rows ? rows : columns;
  // Each sample contributes a head chunk and a tail chunk.
  const int64_t unit = exchange.samples * 2 * (exchange.to_rows ? ranks : 1);
  if (exchange.samples <= 0 || x.dims[0].local % unit != 0) {
    return InvalidArgument("input {} has {} rows, not a multiple of {} chunks of {} samples",
                           x.name, x.dims[0].local, unit / std::max<int64_t>(1, exchange.samples),
                           exchange.samples);
  }
  type.dims[0].local = exchange.to_rows ? x.dims[0].local / ranks : x.dims[0].local * ranks;
  TROUPE_ASSIGN_OR_RETURN(type.dims[1].local, Exchanged(x.name, x.dims[1].local, exchange.head_dim,
                                                        ranks, exchange.to_rows));
  for (Segment& segment : type.segments) {
    TROUPE_ASSIGN_OR_RETURN(segment.local, Exchanged(x.name, segment.local, exchange.head_dim,
                                                     ranks, exchange.to_rows));
  }
  return std::vector<ValueType>{std::move(type)};
}

Status Differentiate(const Op& op, GradientContext& context) {
  auto back = std::get<ExchangeHeadsAttributes>(op.attributes);
  back.to_rows = !back.to_rows;
  return context.Emit(OpKind::kExchangeHeads, back, {context.GradientOf(op.outputs[0])},
                      {op.inputs[0]});
}

}  // namespace

OpRules ExchangeHeadsRules() {
  return {.infer = Infer,
          .differentiate = Differentiate,
          .collective = CollectiveRules{CollectivePattern::kExchange}};
}

}  // namespace troupe::model
