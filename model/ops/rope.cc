// kRope: rotates q and k heads by position (rotate_half pairs i, i + D/2); the gradient is the
// inverse rotation.
#include "model/ops/kinds.h"
#include "model/ops/placement_rule.h"
#include "model/program/derivative.h"

namespace troupe::model {
namespace {

StatusOr<std::vector<ValueType>> Infer(const MeshView& mesh, const Attributes& attributes,
                                       Inputs in) {
  const Value &qkv = *in[0], &positions = *in[1];
  const auto& rope = std::get<RopeAttributes>(attributes);
  TROUPE_RETURN_IF_ERROR(ExpectType(positions, DType::kInt32, 1));
  TROUPE_ASSIGN_OR_RETURN(
      const ShardedLetters letters,
      ShardedLetters::Of({{&qkv, "rn", true, ShardHow::kSegments}, {&positions, "r", false}}));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(qkv, 0, positions, 0));
  const int64_t width = (rope.query_heads + 2 * rope.key_value_heads) * rope.head_dim;
  if (qkv.dims[1].local != width || rope.head_dim % 2 != 0) {
    return InvalidArgument("input {} has {} columns, must have ({} + 2·{}) heads of even dim {}",
                           qkv.name, qkv.dims[1].local, rope.query_heads, rope.key_value_heads,
                           rope.head_dim);
  }
  return std::vector<ValueType>{
      {qkv.dtype, qkv.dims, letters.Output("rn", ShardHow::kSegments), qkv.segments}};
}

Status Differentiate(const Op& op, GradientContext& context) {
  RopeAttributes attributes = std::get<RopeAttributes>(op.attributes);
  attributes.inverse = !attributes.inverse;
  return context.Emit(OpKind::kRope, attributes, {context.GradientOf(op.outputs[0]), op.inputs[1]},
                      {op.inputs[0]});
}

}  // namespace

OpRules RopeRules() {
  return {.infer = Infer, .differentiate = Differentiate, .in_place_input = 0};
}

}  // namespace troupe::model
