// kRouterLoss, kRouterLossGrad: losses that keep a router balanced and its logits small, computed
// per sample so that neither depends on the layout. For a sample of T tokens with weight sum W:
//
//   auxiliary = coef · E/(k·T²) · Σ_e (Σ_t p_te) · n_e     p: softmax over all experts (for sigmoid
//                                                          routers the normalised scores); n_e: the
//                                                          sample's choices of e, without gradient
//   z         = coef · mean_t logsumexp(logits_t)²
//
// (Megatron-LM moe_utils.py, with the sums over one sample.) n_e and W cover whole samples; p and
// logits cover this rank's rows, so the totals are partial sums. The objective is Σ weight·nll +
// Σ_samples W·(auxiliary + z): gradients are sums and are scaled once in Update.
#include "model/ops/kinds.h"
#include "model/ops/placement_rule.h"
#include "model/program/derivative.h"

namespace troupe::model {
namespace {

// The letters of the logits and of the load of whole samples.
StatusOr<ShardedLetters> Letters(const RouterAttributes& router, const Value& logits,
                                 const Value& load) {
  TROUPE_RETURN_IF_ERROR(ExpectType(logits, DType::kFloat32, 2));
  TROUPE_RETURN_IF_ERROR(ExpectType(load, DType::kFloat32, 2));
  Placement due = LoadPlacement(logits.placement);
  for (AxisPlacement& axis : due.axes) {
    if (axis == PartialSum()) axis = Replicated();
  }
  if (load.placement != due) {
    return InvalidArgument("input {} is {}, must be {} of whole samples", load.name,
                           ToText(load.placement), ToText(due));
  }
  if (load.dims[1].local != router.experts + 1 || router.tokens < 1 || router.local_tokens < 1 ||
      router.first_row + logits.dims[0].local > load.dims[0].local * router.local_tokens) {
    return InvalidArgument(
        "input {} has {} samples of {} lanes, but {} are {} rows from {} on, {} of a sample",
        load.name, load.dims[0].local, load.dims[1].local, logits.name, logits.dims[0].local,
        router.first_row, router.local_tokens);
  }
  return ShardedLetters::Of({{&logits, "re"}}, "e");
}

StatusOr<std::vector<ValueType>> Infer(const MeshView& mesh, const Attributes& attributes,
                                       Inputs in) {
  const auto& router = std::get<RouterAttributes>(attributes);
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters letters, Letters(router, *in[0], *in[2]));
  TROUPE_RETURN_IF_ERROR(ExpectType(*in[1], DType::kFloat32, 2));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(*in[1], 0, *in[2], 0));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(*in[1], 1, *in[2], 1));
  if (in[1]->placement != LoadPlacement(in[0]->placement)) {
    return InvalidArgument("input {} is {}, must be {} of this rank's rows", in[1]->name,
                           ToText(in[1]->placement), ToText(LoadPlacement(in[0]->placement)));
  }
  TROUPE_RETURN_IF_ERROR(ExpectType(*in[3], DType::kInt32, 1));
  const int64_t lanes = kRouterLanes + router.experts;
  return std::vector<ValueType>{
      {DType::kFloat64, {{"totals", lanes, lanes}}, letters.Output("t"), {}}};
}

StatusOr<std::vector<ValueType>> InferGrad(const MeshView& mesh, const Attributes& attributes,
                                           Inputs in) {
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters letters,
                          Letters(std::get<RouterAttributes>(attributes), *in[0], *in[1]));
  return std::vector<ValueType>{{DType::kFloat32, in[0]->dims, letters.Output("re"), {}}};
}

Status Differentiate(const Op& op, GradientContext& context) {
  const auto& router = std::get<RouterAttributes>(op.attributes);
  if (router.aux_loss_coef == 0 && router.z_loss_coef == 0) return OkStatus();
  return context.Emit(OpKind::kRouterLossGrad, op.attributes, {op.inputs[0], op.inputs[2]},
                      {op.inputs[0]});
}

}  // namespace

OpRules RouterLossRules() {
  return {.infer = Infer, .differentiate = Differentiate, .accumulated_output = 0};
}
OpRules RouterLossGradRules() { return {.infer = InferGrad}; }

}  // namespace troupe::model
