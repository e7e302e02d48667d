// kSwiGlu, kSwiGluGrad: y = silu(gate)·up with gu = gate|up, each segment sharded separately. If
// the last input is counts (of experts' rows), only as many rows as their sum are computed.
#include "model/ops/kinds.h"
#include "model/ops/placement_rule.h"
#include "model/program/derivative.h"

namespace troupe::model {
namespace {

Status CheckSegments(const Value& gu) {
  if (gu.segments.size() == 2 && gu.segments[0].local == gu.segments[1].local &&
      gu.segments[0].local * 2 == gu.dims[1].local) {
    return OkStatus();
  }
  return InvalidArgument("input {} does not have two equal segments gate and up", gu.name);
}

StatusOr<std::vector<ValueType>> Infer(const MeshView& mesh, const Attributes& attributes,
                                       Inputs in) {
  const Value& gu = *in[0];
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters letters,
                          ShardedLetters::Of({{&gu, "rn", true, ShardHow::kSegments}}));
  TROUPE_RETURN_IF_ERROR(CheckSegments(gu));
  if (in.size() > 1) TROUPE_RETURN_IF_ERROR(ExpectType(*in[1], DType::kInt32, 1));
  const Segment& gate = gu.segments[0];
  return std::vector<ValueType>{{gu.dtype,
                                 {gu.dims[0], {"ffn", gate.global, gate.local}},
                                 letters.Output("rn", ShardHow::kContiguous),
                                 {}}};
}

StatusOr<std::vector<ValueType>> InferGrad(const MeshView& mesh, const Attributes& attributes,
                                           Inputs in) {
  const Value &dy = *in[0], &gu = *in[1];
  TROUPE_RETURN_IF_ERROR(ExpectType(dy, gu.dtype, 2));
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters letters,
                          ShardedLetters::Of({{&dy, "rn", true, ShardHow::kContiguous},
                                              {&gu, "rn", true, ShardHow::kSegments}}));
  TROUPE_RETURN_IF_ERROR(CheckSegments(gu));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(dy, 0, gu, 0));
  if (dy.dims[1].local != gu.segments[0].local) {
    return InvalidArgument("input {} has {} columns, but {} has segments of {}", dy.name,
                           dy.dims[1].local, gu.name, gu.segments[0].local);
  }
  return std::vector<ValueType>{
      {gu.dtype, gu.dims, letters.Output("rn", ShardHow::kSegments), gu.segments}};
}

Status Differentiate(const Op& op, GradientContext& context) {
  std::vector<ValueId> inputs = {context.GradientOf(op.outputs[0])};
  inputs.insert(inputs.end(), op.inputs.begin(), op.inputs.end());
  return context.Emit(OpKind::kSwiGluGrad, NoAttributes(), inputs, {op.inputs[0]});
}

}  // namespace

OpRules SwiGluRules() { return {.infer = Infer, .differentiate = Differentiate}; }
OpRules SwiGluGradRules() { return {.infer = InferGrad, .in_place_input = 1}; }

}  // namespace troupe::model
