// kCrossEntropy, kCrossEntropyGrad: the loss from combined softmax statistics. The seed of the
// derivative is 1 for Σ weight·nll: gradients are sums, scaled once in Update.
#include "model/ops/kinds.h"
#include "model/ops/placement_rule.h"
#include "model/program/derivative.h"

namespace troupe::model {
namespace {

StatusOr<std::vector<ValueType>> Infer(const MeshView& mesh, const Attributes& attributes,
                                       Inputs in) {
  const Value &global_max = *in[0], &sums = *in[1], &weights = *in[2];
  TROUPE_RETURN_IF_ERROR(ExpectType(weights, DType::kFloat32, 1));
  TROUPE_ASSIGN_OR_RETURN(
      const ShardedLetters letters,
      ShardedLetters::Of({{&global_max, "r"}, {&sums, "sr"}, {&weights, "r", false}}, "s"));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(global_max, 0, sums, 1));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(weights, 0, sums, 1));
  return std::vector<ValueType>{{DType::kFloat64, {{"totals", 2, 2}}, letters.Output("t"), {}}};
}

StatusOr<std::vector<ValueType>> InferGrad(const MeshView& mesh, const Attributes& attributes,
                                           Inputs in) {
  const Value &sums = *in[0], &weights = *in[1];
  TROUPE_RETURN_IF_ERROR(ExpectType(weights, DType::kFloat32, 1));
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters letters,
                          ShardedLetters::Of({{&sums, "sr"}, {&weights, "r", false}}, "s"));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(weights, 0, sums, 1));
  return std::vector<ValueType>{{DType::kFloat32, sums.dims, letters.Output("sr"), {}}};
}

Status Differentiate(const Op& op, GradientContext& context) {
  return context.Emit(OpKind::kCrossEntropyGrad, NoAttributes(), {op.inputs[1], op.inputs[2]},
                      {op.inputs[1]});
}

}  // namespace

OpRules CrossEntropyRules() {
  return {.infer = Infer, .differentiate = Differentiate, .accumulated_output = 0};
}
OpRules CrossEntropyGradRules() { return {.infer = InferGrad}; }

}  // namespace troupe::model
