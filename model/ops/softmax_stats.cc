// The local statistics of a softmax over a possibly sharded vocabulary, and their combination:
//   softmax_stats     each rank's max, Σ exp(l - max) and target logit of its slice
//   all_reduce(max)   the global max (an operation of its own)
//   softmax_rescale   the sums as if made with the global max: now Partial(sum)
// Along the axis that shards the vocabulary, max is Partial(max). Sums are relative to each rank's
// own max and thus not Partial(sum) yet; they are Shard(0): one slice of two rows per rank.
//
// If the vocabulary is whole, nothing has to be combined; softmax_stats_and_grad then computes the
// statistics and the gradient of the loss while a row of logits is in cache.
#include "model/ops/kinds.h"
#include "model/ops/placement_rule.h"
#include "model/program/derivative.h"

namespace troupe::model {
namespace {

// The degree of the axes along which `max` is Partial(max): the number of slices of two rows.
int64_t Slices(const MeshView& mesh, const Value& max) {
  int64_t slices = 1;
  for (int a = 1; a < kNumAxes; ++a) {
    if (max.placement.axes[a] == PartialMax()) slices *= mesh.degrees.of[a];
  }
  return slices;
}

StatusOr<std::vector<ValueType>> Infer(const MeshView& mesh, const Attributes& attributes,
                                       Inputs in) {
  const Value &logits = *in[0], &targets = *in[1];
  TROUPE_RETURN_IF_ERROR(ExpectType(targets, DType::kInt32, 1));
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters letters,
                          ShardedLetters::Of({{&logits, "rv"}, {&targets, "r", false}}));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(logits, 0, targets, 0));
  Value max;
  max.placement = letters.Output("r");
  Placement sums = letters.Output("sr");
  for (int a = 1; a < kNumAxes; ++a) {
    if (max.placement.axes[a] != PartialSum()) continue;
    max.placement.axes[a] = PartialMax();
    sums.axes[a] = Shard(0);
  }
  return std::vector<ValueType>{
      {DType::kFloat32, {logits.dims[0]}, max.placement, {}},
      {DType::kFloat32, {{"stats", 2 * Slices(mesh, max), 2}, logits.dims[0]}, sums, {}}};
}

// The placement of a combination of statistics. Along an axis where `max` is Partial(max), `sums`
// must be `due`, `global_max` must be Replicated, and the result is `gives`. On other axes all
// three have the same sharding of rows.
StatusOr<Placement> Combine(const Value& sums, const Value& max, const Value& global_max,
                            AxisPlacement due, AxisPlacement gives) {
  Value by_rows[3] = {sums, max, global_max};
  for (int a = 1; a < kNumAxes; ++a) {
    if (max.placement.axes[a] != PartialMax()) continue;
    if (sums.placement.axes[a] != due || global_max.placement.axes[a] != Replicated()) {
      return InvalidArgument("inputs {} and {} are {} and {} on axis {}, must be {} and R",
                             sums.name, global_max.name, ToText(sums.placement.axes[a]),
                             ToText(global_max.placement.axes[a]), Name(static_cast<Axis>(a)),
                             ToText(due));
    }
    for (Value& value : by_rows) value.placement.axes[a] = Replicated();
  }
  TROUPE_ASSIGN_OR_RETURN(
      const ShardedLetters letters,
      ShardedLetters::Of({{&by_rows[0], "sr"}, {&by_rows[1], "r"}, {&by_rows[2], "r"}}, "s"));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(max, 0, global_max, 0));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(max, 0, sums, 1));
  Placement placement = letters.Output("sr");
  for (int a = 1; a < kNumAxes; ++a) {
    if (max.placement.axes[a] == PartialMax()) placement.axes[a] = gives;
  }
  return placement;
}

StatusOr<std::vector<ValueType>> InferRescale(const MeshView& mesh, const Attributes& attributes,
                                              Inputs in) {
  TROUPE_ASSIGN_OR_RETURN(const Placement placement,
                          Combine(*in[0], *in[1], *in[2], Shard(0), PartialSum()));
  return std::vector<ValueType>{
      {DType::kFloat32, {{"stats", 2, 2}, in[0]->dims[1]}, placement, {}}};
}

StatusOr<std::vector<ValueType>> InferRescaleGrad(const MeshView& mesh,
                                                  const Attributes& attributes, Inputs in) {
  TROUPE_ASSIGN_OR_RETURN(const Placement placement,
                          Combine(*in[0], *in[1], *in[2], Copied(), Shard(0)));
  return std::vector<ValueType>{
      {DType::kFloat32, {{"stats", 2 * Slices(mesh, *in[1]), 2}, in[0]->dims[1]}, placement, {}}};
}

StatusOr<std::vector<ValueType>> InferStatsGrad(const MeshView& mesh, const Attributes& attributes,
                                                Inputs in) {
  const Value &logits = *in[0], &targets = *in[1], &max = *in[2], &d_sums = *in[3];
  TROUPE_ASSIGN_OR_RETURN(const std::vector<ValueType> stats,
                          Infer(mesh, attributes, in.subspan(0, 2)));
  if (max.placement != stats[0].placement ||
      d_sums.placement != GradientPlacement(stats[1].placement)) {
    return InvalidArgument("inputs {} and {} are {} and {}, which do not fit {} of {}", max.name,
                           d_sums.name, ToText(max.placement), ToText(d_sums.placement),
                           ToText(logits.placement), logits.name);
  }
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(logits, 0, targets, 0));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(logits, 0, max, 0));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(logits, 0, d_sums, 1));
  return std::vector<ValueType>{{logits.dtype, logits.dims, logits.placement, logits.segments}};
}

StatusOr<std::vector<ValueType>> InferStatsAndGrad(const MeshView& mesh,
                                                   const Attributes& attributes, Inputs in) {
  const Value &targets = *in[1], &weights = *in[2];
  Value logits = *in[0];
  TROUPE_RETURN_IF_ERROR(ExpectType(targets, DType::kInt32, 1));
  TROUPE_RETURN_IF_ERROR(ExpectType(weights, DType::kFloat32, 1));
  for (int a = 1; a < kNumAxes; ++a) {
    AxisPlacement& placement = logits.placement.axes[a];
    if (placement.kind != PlacementKind::kShard || placement.dim != 1) continue;
    if (mesh.degrees.of[a] > 1) {
      return InvalidArgument(
          "input {} is {} on axis {} of {} ranks, must have the whole vocabulary", logits.name,
          ToText(placement), Name(static_cast<Axis>(a)), mesh.degrees.of[a]);
    }
    placement = Replicated();
  }
  TROUPE_ASSIGN_OR_RETURN(
      const ShardedLetters letters,
      ShardedLetters::Of({{&logits, "rv"}, {&targets, "r", false}, {&weights, "r", false}}, "v"));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(logits, 0, targets, 0));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(logits, 0, weights, 0));
  return std::vector<ValueType>{
      {logits.dtype, logits.dims, in[0]->placement, logits.segments},
      {DType::kFloat32, {logits.dims[0]}, letters.Output("r"), {}},
      {DType::kFloat32, {{"stats", 2, 2}, logits.dims[0]}, letters.Output("sr"), {}}};
}

Status DifferentiateStatsAndGrad(const Op& op, GradientContext& context) {
  return context.Contribute(op.inputs[0], op.outputs[0]);
}

Status Differentiate(const Op& op, GradientContext& context) {
  return context.Emit(
      OpKind::kSoftmaxStatsGrad, op.attributes,
      {op.inputs[0], op.inputs[1], op.outputs[0], context.GradientOf(op.outputs[1])},
      {op.inputs[0]});
}

// The combined loss does not depend on the subtracted maximum, so max and global_max have no
// gradient.
Status DifferentiateRescale(const Op& op, GradientContext& context) {
  return context.Emit(OpKind::kSoftmaxRescaleGrad, NoAttributes(),
                      {context.GradientOf(op.outputs[0]), op.inputs[1], op.inputs[2]},
                      {op.inputs[0]});
}

}  // namespace

OpRules SoftmaxStatsRules() { return {.infer = Infer, .differentiate = Differentiate}; }
OpRules SoftmaxRescaleRules() {
  return {.infer = InferRescale, .differentiate = DifferentiateRescale};
}
OpRules SoftmaxRescaleGradRules() { return {.infer = InferRescaleGrad}; }
OpRules SoftmaxStatsGradRules() { return {.infer = InferStatsGrad, .in_place_input = 0}; }
OpRules SoftmaxStatsAndGradRules() {
  return {
      .infer = InferStatsAndGrad, .differentiate = DifferentiateStatsAndGrad, .in_place_input = 0};
}

}  // namespace troupe::model
