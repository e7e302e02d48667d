// kRouterLogits logits = x wᵀ, kRouterLogitsGradInput, kRouterLogitsGradWeight: the router's
// matmul. It is in float32 for every compute dtype, because rounding a logit may send a token to
// another expert. Its FLOPs do not count as model FLOPs, which by convention count only the
// experts.
#include "model/ops/kinds.h"
#include "model/ops/placement_rule.h"
#include "model/program/derivative.h"

namespace troupe::model {
namespace {

StatusOr<std::vector<ValueType>> Infer(const MeshView& mesh, const Attributes& attributes,
                                       Inputs in) {
  const Value &x = *in[0], &w = *in[1];
  TROUPE_RETURN_IF_ERROR(ExpectType(w, DType::kFloat32, 2));
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters letters,
                          ShardedLetters::Of({{&x, "rh"}, {&w, "eh"}}, "he"));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(x, 1, w, 1));
  return std::vector<ValueType>{
      {DType::kFloat32, {x.dims[0], w.dims[0]}, letters.Output("re"), {}}};
}

StatusOr<std::vector<ValueType>> InferGradInput(const MeshView& mesh, const Attributes& attributes,
                                                Inputs in) {
  const Value &dlogits = *in[0], &w = *in[1];
  TROUPE_RETURN_IF_ERROR(ExpectType(dlogits, DType::kFloat32, 2));
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters letters,
                          ShardedLetters::Of({{&dlogits, "re"}, {&w, "eh"}}, "he"));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(dlogits, 1, w, 0));
  return std::vector<ValueType>{{std::get<RouterAttributes>(attributes).compute,
                                 {dlogits.dims[0], w.dims[1]},
                                 letters.Output("rh"),
                                 {}}};
}

StatusOr<std::vector<ValueType>> InferGradWeight(const MeshView& mesh, const Attributes& attributes,
                                                 Inputs in) {
  const Value &dlogits = *in[0], &x = *in[1];
  TROUPE_RETURN_IF_ERROR(ExpectType(dlogits, DType::kFloat32, 2));
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters letters,
                          ShardedLetters::Of({{&dlogits, "re"}, {&x, "rh"}}, "he"));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(dlogits, 0, x, 0));
  return std::vector<ValueType>{
      {DType::kFloat32, {dlogits.dims[1], x.dims[1]}, letters.Output("eh"), {}}};
}

Status Differentiate(const Op& op, GradientContext& context) {
  const ValueId x = op.inputs[0], w = op.inputs[1];
  const ValueId dlogits = context.GradientOf(op.outputs[0]);
  TROUPE_RETURN_IF_ERROR(
      context.Emit(OpKind::kRouterLogitsGradInput, op.attributes, {dlogits, w}, {x}));
  return context.Emit(OpKind::kRouterLogitsGradWeight, op.attributes, {dlogits, x}, {w});
}

}  // namespace

OpRules RouterLogitsRules() { return {.infer = Infer, .differentiate = Differentiate}; }
OpRules RouterLogitsGradInputRules() { return {.infer = InferGradInput}; }
OpRules RouterLogitsGradWeightRules() {
  return {.infer = InferGradWeight, .accumulated_output = 0};
}

}  // namespace troupe::model
