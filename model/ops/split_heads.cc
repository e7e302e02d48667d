// kSplitHeads, kJoinHeads: convert between the fused q, k and v of rows and q separate from k and
// v; each is the other's derivative. Keys and values are stored together, since they are sent
// together.
#include "model/ops/kinds.h"
#include "model/ops/placement_rule.h"
#include "model/program/derivative.h"

namespace troupe::model {
namespace {

StatusOr<std::vector<ValueType>> InferSplit(const MeshView& mesh, const Attributes& attributes,
                                            Inputs in) {
  const Value& qkv = *in[0];
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters letters,
                          ShardedLetters::Of({{&qkv, "rn", true, ShardHow::kSegments}}));
  if (qkv.segments.size() != 3) {
    return InvalidArgument("input {} has {} segments, must have q, k and v", qkv.name,
                           qkv.segments.size());
  }
  const Segment &q = qkv.segments[0], &k = qkv.segments[1], &v = qkv.segments[2];
  return std::vector<ValueType>{{qkv.dtype,
                                 {qkv.dims[0], {"attention", q.global, q.local}},
                                 letters.Output("rn", ShardHow::kContiguous),
                                 {}},
                                {qkv.dtype,
                                 {qkv.dims[0], {"kv", k.global + v.global, k.local + v.local}},
                                 letters.Output("rn", ShardHow::kSegments),
                                 {k, v}}};
}

StatusOr<std::vector<ValueType>> InferJoin(const MeshView& mesh, const Attributes& attributes,
                                           Inputs in) {
  const Value &q = *in[0], &kv = *in[1];
  TROUPE_RETURN_IF_ERROR(ExpectType(kv, q.dtype, 2));
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters letters,
                          ShardedLetters::Of({{&q, "rn", true, ShardHow::kContiguous},
                                              {&kv, "rn", true, ShardHow::kSegments}}));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(q, 0, kv, 0));
  if (kv.segments.size() != 2) {
    return InvalidArgument("input {} has {} segments, must have k and v", kv.name,
                           kv.segments.size());
  }
  const Segment queries = {"q", q.dims[1].global, q.dims[1].local};
  return std::vector<ValueType>{
      {q.dtype,
       {q.dims[0],
        {"qkv", q.dims[1].global + kv.dims[1].global, q.dims[1].local + kv.dims[1].local}},
       letters.Output("rn", ShardHow::kSegments),
       {queries, kv.segments[0], kv.segments[1]}}};
}

Status DifferentiateSplit(const Op& op, GradientContext& context) {
  return context.Emit(OpKind::kJoinHeads, NoAttributes(),
                      {context.GradientOf(op.outputs[0]), context.GradientOf(op.outputs[1])},
                      {op.inputs[0]});
}

Status DifferentiateJoin(const Op& op, GradientContext& context) {
  return context.Emit(OpKind::kSplitHeads, NoAttributes(), {context.GradientOf(op.outputs[0])},
                      {op.inputs[0], op.inputs[1]});
}

}  // namespace

OpRules SplitHeadsRules() { return {.infer = InferSplit, .differentiate = DifferentiateSplit}; }
OpRules JoinHeadsRules() { return {.infer = InferJoin, .differentiate = DifferentiateJoin}; }

}  // namespace troupe::model
