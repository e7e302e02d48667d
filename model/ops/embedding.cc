// kEmbedding, kEmbeddingGrad: rows of a table by token ids. A table sharded by vocabulary returns
// Partial(sum): rows for ids of other ranks are 0.
#include "model/ops/kinds.h"
#include "model/ops/placement_rule.h"
#include "model/program/derivative.h"

namespace troupe::model {
namespace {

StatusOr<std::vector<ValueType>> Infer(const MeshView& mesh, const Attributes& attributes,
                                       Inputs in) {
  const Value &tokens = *in[0], &table = *in[1];
  TROUPE_RETURN_IF_ERROR(ExpectType(tokens, DType::kInt32, 1));
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters letters,
                          ShardedLetters::Of({{&tokens, "r", false}, {&table, "vh"}}, "h"));
  return std::vector<ValueType>{
      {table.dtype, {tokens.dims[0], table.dims[1]}, letters.Output("rh"), {}}};
}

StatusOr<std::vector<ValueType>> InferGrad(const MeshView& mesh, const Attributes& attributes,
                                           Inputs in) {
  const Value &tokens = *in[0], &dy = *in[1];
  TROUPE_RETURN_IF_ERROR(ExpectType(tokens, DType::kInt32, 1));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(tokens, 0, dy, 0));
  // The table's vocabulary is not a dim of any input: along an axis where dy is Copied, each rank
  // computes the gradient of its own slice.
  Value rows_only = dy;
  for (AxisPlacement& axis : rows_only.placement.axes) {
    if (axis == Copied()) axis = Replicated();
  }
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters letters,
                          ShardedLetters::Of({{&tokens, "r", false}, {&rows_only, "rh"}}, "h"));
  Placement placement = letters.Output("vh");
  for (int a = 1; a < kNumAxes; ++a) {
    if (dy.placement.axes[a] == Copied()) placement.axes[a] = Shard(0);
  }
  const auto& vocab = std::get<VocabAttributes>(attributes);
  return std::vector<ValueType>{{DType::kFloat32,
                                 {{"vocab", vocab.vocab_size, vocab.vocab_rows}, dy.dims[1]},
                                 placement,
                                 {}}};
}

Status Differentiate(const Op& op, GradientContext& context) {
  return context.Emit(OpKind::kEmbeddingGrad, op.attributes,
                      {op.inputs[0], context.GradientOf(op.outputs[0])}, {op.inputs[1]});
}

}  // namespace

OpRules EmbeddingRules() { return {.infer = Infer, .differentiate = Differentiate}; }
OpRules EmbeddingGradRules() { return {.infer = InferGrad, .accumulated_output = 0}; }

}  // namespace troupe::model
