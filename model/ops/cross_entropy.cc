// kCrossEntropy, kCrossEntropyGrad: the loss from combined softmax statistics. The derivative is
// that of Σ weight·(nll + z·lse²) with seed 1: gradients are sums and are scaled once in Update.
// The totals hold only Σ weight·nll.
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
  // Only the z-loss reads the maximum to which the sums are relative.
  const Value& global_max = in.size() > 2 ? *in[2] : weights;
  TROUPE_RETURN_IF_ERROR(ExpectType(weights, DType::kFloat32, 1));
  TROUPE_ASSIGN_OR_RETURN(
      const ShardedLetters letters,
      ShardedLetters::Of({{&sums, "sr"}, {&weights, "r", false}, {&global_max, "r", false}}, "s"));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(weights, 0, sums, 1));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(global_max, 0, sums, 1));
  if ((std::get<LossAttributes>(attributes).z_loss_coef > 0) != (in.size() > 2)) {
    return InvalidArgument("it has {} inputs, must have {}: a z-loss reads the global max",
                           in.size(), 5 - in.size());
  }
  return std::vector<ValueType>{{DType::kFloat32, sums.dims, letters.Output("sr"), {}}};
}

Status Differentiate(const Op& op, GradientContext& context) {
  // kSoftmaxStatsAndGrad has already computed the gradient of the logits.
  const Op* statistics = context.MakerOf(op.inputs[1]);
  if (statistics != nullptr && statistics->kind == OpKind::kSoftmaxStatsAndGrad) return OkStatus();
  // lse = log(sums0) + global_max does not depend on the subtracted maximum, so the sums carry its
  // whole gradient.
  std::vector<ValueId> read = {op.inputs[1], op.inputs[2]};
  if (std::get<LossAttributes>(op.attributes).z_loss_coef > 0) read.push_back(op.inputs[0]);
  return context.Emit(OpKind::kCrossEntropyGrad, op.attributes, read, {op.inputs[1]});
}

}  // namespace

OpRules CrossEntropyRules() {
  return {.infer = Infer, .differentiate = Differentiate, .accumulated_output = 0};
}
OpRules CrossEntropyGradRules() { return {.infer = InferGrad}; }

}  // namespace troupe::model
