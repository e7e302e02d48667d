// kRouterTopK, kRouterTopKGrad: scores of the logits, the k best experts of each token with their
// weights, and the row of each choice in a buffer sorted by expert.
//
//   score   softmax over all experts, or a sigmoid of each logit
//   weight  the score, or (normalise) the score divided by the sum of the token's k scores
//
// The gradient of the weights passes through the scores; the choice of experts is treated as
// constant.
#include "model/ops/kinds.h"
#include "model/ops/placement_rule.h"
#include "model/program/derivative.h"

namespace troupe::model {
namespace {

StatusOr<std::vector<ValueType>> Infer(const MeshView& mesh, const Attributes& attributes,
                                       Inputs in) {
  const auto& router = std::get<RouterAttributes>(attributes);
  const Value& logits = *in[0];
  TROUPE_RETURN_IF_ERROR(ExpectType(logits, DType::kFloat32, 2));
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters letters, ShardedLetters::Of({{&logits, "re"}}, "e"));
  if (in.size() > 1) {
    TROUPE_RETURN_IF_ERROR(ExpectType(*in[1], DType::kFloat32, 1));
    TROUPE_RETURN_IF_ERROR(ExpectSameExtent(logits, 1, *in[1], 0));
  }
  const Dim& rows = logits.dims[0];
  if (logits.dims[1].local != router.experts || router.top_k < 1 || router.top_k > router.experts) {
    return InvalidArgument("input {} has rows of {}, must have {} of {} experts", logits.name,
                           logits.dims[1].local, router.top_k, router.experts);
  }
  const int64_t data_ranks = rows.global / rows.local;
  const Placement by_rows = letters.Output("r");
  const std::vector<Dim> choices = {rows, {"choices", router.top_k, router.top_k}};
  return std::vector<ValueType>{
      {DType::kFloat32, choices, by_rows, {}},
      {DType::kInt32, choices, by_rows, {}},
      {DType::kInt32, choices, by_rows, {}},
      {DType::kInt32, {{"counts", router.experts * data_ranks, router.experts}}, by_rows, {}}};
}

StatusOr<std::vector<ValueType>> InferGrad(const MeshView& mesh, const Attributes& attributes,
                                           Inputs in) {
  const Value &dweights = *in[0], &logits = *in[1], &experts = *in[2];
  TROUPE_RETURN_IF_ERROR(ExpectType(dweights, DType::kFloat32, 2));
  TROUPE_RETURN_IF_ERROR(ExpectType(experts, DType::kInt32, 2));
  TROUPE_ASSIGN_OR_RETURN(
      const ShardedLetters letters,
      ShardedLetters::Of({{&dweights, "rk"}, {&logits, "re"}, {&experts, "rk", false}}, "ek"));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(dweights, 0, logits, 0));
  return std::vector<ValueType>{{DType::kFloat32, logits.dims, letters.Output("re"), {}}};
}

Status Differentiate(const Op& op, GradientContext& context) {
  const ValueId dweights = context.GradientOf(op.outputs[0]);
  if (dweights == kNoValue) return Internal("the weights of {} are not used", Name(op.kind));
  return context.Emit(OpKind::kRouterTopKGrad, op.attributes,
                      {dweights, op.inputs[0], op.outputs[1]}, {op.inputs[0]});
}

}  // namespace

OpRules RouterTopKRules() { return {.infer = Infer, .differentiate = Differentiate}; }
OpRules RouterTopKGradRules() { return {.infer = InferGrad}; }

}  // namespace troupe::model
