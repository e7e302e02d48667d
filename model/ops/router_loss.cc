// kRouterLoss, kRouterLossGrad: what keeps a router balanced and its logits small, for each sample
// row by itself, so that neither depends on the layout. Of a row of T tokens with weight sum W:
//
//   auxiliary = coef · E/(k·T²) · Σ_e (Σ_t p_te) · n_e     p: softmax over all experts (of sigmoid
//                                                          routers the normalised scores); n_e: the
//                                                          row's choices of e, without gradient
//   z         = coef · mean_t logsumexp(logits_t)²
//
// (Megatron-LM moe_utils.py, with the sums over one row.) The objective is Σ weight·nll +
// Σ_rows W·(auxiliary + z): gradients are sums, scaled once in Update.
#include "model/ops/kinds.h"
#include "model/ops/placement_rule.h"
#include "model/program/derivative.h"

namespace troupe::model {
namespace {

StatusOr<ShardedLetters> Letters(const Value& logits, const Value& routed, const Value& weights) {
  TROUPE_RETURN_IF_ERROR(ExpectType(logits, DType::kFloat32, 2));
  TROUPE_RETURN_IF_ERROR(ExpectType(routed, DType::kFloat32, 2));
  TROUPE_RETURN_IF_ERROR(ExpectType(weights, DType::kFloat32, 1));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(logits, 0, weights, 0));
  return ShardedLetters::Of({{&logits, "re"}, {&routed, "re", false}, {&weights, "r", false}}, "e");
}

StatusOr<std::vector<ValueType>> Infer(const MeshView& mesh, const Attributes& attributes,
                                       Inputs in) {
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters letters, Letters(*in[0], *in[1], *in[3]));
  TROUPE_RETURN_IF_ERROR(ExpectType(*in[2], DType::kInt32, 1));
  const int64_t lanes = kRouterLanes + std::get<RouterAttributes>(attributes).experts;
  return std::vector<ValueType>{
      {DType::kFloat64, {{"totals", lanes, lanes}}, letters.Output("t"), {}}};
}

StatusOr<std::vector<ValueType>> InferGrad(const MeshView& mesh, const Attributes& attributes,
                                           Inputs in) {
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters letters, Letters(*in[0], *in[1], *in[2]));
  return std::vector<ValueType>{{DType::kFloat32, in[0]->dims, letters.Output("re"), {}}};
}

Status Differentiate(const Op& op, GradientContext& context) {
  const auto& router = std::get<RouterAttributes>(op.attributes);
  if (router.aux_loss_coef == 0 && router.z_loss_coef == 0) return OkStatus();
  return context.Emit(OpKind::kRouterLossGrad, op.attributes,
                      {op.inputs[0], op.inputs[1], op.inputs[3]}, {op.inputs[0]});
}

}  // namespace

OpRules RouterLossRules() {
  return {.infer = Infer, .differentiate = Differentiate, .accumulated_output = 0};
}
OpRules RouterLossGradRules() { return {.infer = InferGrad}; }

}  // namespace troupe::model
