// kDropout: each element is either scaled by 1/(1-p) or set to 0. The choice is a function of key,
// step and GLOBAL coordinates (the sample's slot, the token's position in it, the channel), so it
// is identical under every layout. The derivative is the same operation on the gradient, and
// nothing is saved.
#include <algorithm>

#include "model/ops/kinds.h"
#include "model/ops/placement_rule.h"
#include "model/program/derivative.h"

namespace troupe::model {
namespace {

// Checks that `samples` is sharded like the rows of `x` over data axes and replicated on context
// and tensor.
Status CheckSamples(const Value& x, const Value& samples) {
  for (int a = 1; a < kNumAxes; ++a) {
    const Axis axis = static_cast<Axis>(a);
    const bool cuts = axis != Axis::kContext && axis != Axis::kTensor;
    const AxisPlacement due = cuts ? x.placement.axes[a] : Replicated();
    if (samples.placement.axes[a] == due) continue;
    return InvalidArgument("input {} is {} on axis {}, where {} is {}: it must be {}", samples.name,
                           ToText(samples.placement.axes[a]), Name(axis), x.name,
                           ToText(x.placement.axes[a]), ToText(due));
  }
  if (samples.dims[1].local == 2) return OkStatus();
  return InvalidArgument("input {} has {} numbers per sample, must have step and slot",
                         samples.name, samples.dims[1].local);
}

// Checks that the attributes name the rows that the placement leaves on this rank.
Status CheckRows(const MeshView& mesh, const DropoutAttributes& dropout, const Value& x,
                 int64_t samples) {
  const AxisPlacement& context = x.placement[Axis::kContext];
  const bool cut = context.kind == PlacementKind::kShard;
  if (cut && context.how != ShardHow::kHeadTail) {
    return InvalidArgument("input {} is {} on axis context, must be {}", x.name, ToText(context),
                           ToText(Shard(0, ShardHow::kHeadTail)));
  }
  const ContextRows held = cut ? ContextRows::Of(dropout.tokens, mesh.degrees[Axis::kContext],
                                                 mesh.coordinates[Axis::kContext])
                               : ContextRows::Of(dropout.tokens, 1, 0);
  const AxisPlacement& tensor = x.placement[Axis::kTensor];
  const int ranks = mesh.degrees[Axis::kTensor], rank = mesh.coordinates[Axis::kTensor];
  const int64_t all = samples * held.rows;
  Range rows = {0, all};
  TensorRows own;
  if (tensor.kind == PlacementKind::kShard && tensor.how == ShardHow::kParts) {
    // The operation gives the number of parts, provided that they are equal.
    const int64_t parts = std::max<int64_t>(1, all / std::max<int64_t>(1, dropout.own.stride));
    if (all % (parts * ranks) == 0) own = TensorRows::OfParts(all, parts, ranks, rank);
    rows = {own.first, own.first + all / ranks};
  } else if (tensor.kind == PlacementKind::kShard) {
    rows = BalancedRange(rows.end, ranks, rank);
    own.first = rows.begin;
  }
  if (dropout.held == held && dropout.own == own && x.dims[0].local == rows.size()) {
    return OkStatus();
  }
  return InvalidArgument(
      "input {} has {} rows, must have {} from row {} on (blocks of {}) of {} samples of {} "
      "tokens, positions from {} and {}, but the operation takes them from row {} (blocks of {}), "
      "positions from {} and {}",
      x.name, x.dims[0].local, rows.size(), own.first, own.block, samples, dropout.tokens,
      held.head, held.tail, dropout.own.first, dropout.own.block, dropout.held.head,
      dropout.held.tail);
}

StatusOr<std::vector<ValueType>> Infer(const MeshView& mesh, const Attributes& attributes,
                                       Inputs in) {
  const auto& dropout = std::get<DropoutAttributes>(attributes);
  const Value &x = *in[0], &samples = *in[1];
  TROUPE_RETURN_IF_ERROR(ExpectType(samples, DType::kInt32, 2));
  // Also rejects a Partial x: dropout of partial sums is not dropout of the sum.
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters letters, ShardedLetters::Of({{&x, "rh"}}, "h"));
  TROUPE_RETURN_IF_ERROR(CheckSamples(x, samples));
  TROUPE_RETURN_IF_ERROR(CheckRows(mesh, dropout, x, samples.dims[0].local));
  if (!(dropout.probability > 0 && dropout.probability < 1)) {
    return InvalidArgument("probability {} is not between 0 and 1", dropout.probability);
  }
  return std::vector<ValueType>{{x.dtype, x.dims, letters.Output("rh"), x.segments}};
}

Status Differentiate(const Op& op, GradientContext& context) {
  return context.Emit(OpKind::kDropout, op.attributes,
                      {context.GradientOf(op.outputs[0]), op.inputs[1]}, {op.inputs[0]});
}

}  // namespace

OpRules DropoutRules() {
  return {.infer = Infer, .differentiate = Differentiate, .in_place_input = 0};
}

}  // namespace troupe::model
