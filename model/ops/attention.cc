// kAttention, kAttentionGrad: causal grouped-query attention within each sample or each of its
// documents. Heads may be sharded (q, k and v each separately), rows only by whole samples.
#include <algorithm>

#include "model/ops/kinds.h"
#include "model/ops/placement_rule.h"
#include "model/program/derivative.h"

namespace troupe::model {
namespace {

Status CheckHeads(const AttentionAttributes& a, const Value& qkv) {
  if (a.key_value_heads <= 0 || a.query_heads % a.key_value_heads != 0) {
    return InvalidArgument("{} query heads are not a multiple of {} key-value heads", a.query_heads,
                           a.key_value_heads);
  }
  const int64_t width = (a.query_heads + 2 * a.key_value_heads) * a.head_dim;
  if (qkv.dims[1].local != width || qkv.dims[0].local % a.tokens != 0) {
    return InvalidArgument(
        "input {} is [{}, {}], must have samples of {} rows and ({} + 2·{})·{} columns", qkv.name,
        qkv.dims[0].local, qkv.dims[1].local, a.tokens, a.query_heads, a.key_value_heads,
        a.head_dim);
  }
  return OkStatus();
}

// Checks that the mask's documents, input number `index`, have the placement of the rows of `qkv`.
Status CheckDocuments(const AttentionAttributes& a, const Value& qkv, Inputs in, size_t index) {
  const size_t due = a.mask.kind == Mask::Kind::kDocument ? index + 1 : index;
  if (in.size() != due) return InvalidArgument("there are {} inputs, must be {}", in.size(), due);
  if (due == index) return OkStatus();
  const Value& documents = *in[index];
  TROUPE_RETURN_IF_ERROR(ExpectType(documents, DType::kInt32, 1));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(qkv, 0, documents, 0));
  return ShardedLetters::Of({{&qkv, "rn", true, ShardHow::kSegments}, {&documents, "r", false}})
      .status();
}

StatusOr<std::vector<ValueType>> Infer(const MeshView& mesh, const Attributes& attributes,
                                       Inputs in) {
  const Value& qkv = *in[0];
  const auto& a = std::get<AttentionAttributes>(attributes);
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters letters,
                          ShardedLetters::Of({{&qkv, "rn", true, ShardHow::kSegments}}));
  TROUPE_RETURN_IF_ERROR(CheckHeads(a, qkv));
  TROUPE_RETURN_IF_ERROR(CheckDocuments(a, qkv, in, 1));
  const AxisPlacement& context = qkv.placement[Axis::kContext];
  if (mesh.degrees[Axis::kContext] > 1 && context.kind == PlacementKind::kShard &&
      context.dim == 0) {
    return InvalidArgument("input {} is {} on axis context, but attention needs whole samples",
                           qkv.name, ToText(context));
  }
  if (qkv.segments.empty()) return InvalidArgument("input {} has no segments q, k, v", qkv.name);
  const int64_t global_width = qkv.segments[0].global;
  const Dim heads = {"heads", global_width / a.head_dim, a.query_heads};
  return std::vector<ValueType>{
      {qkv.dtype,
       {qkv.dims[0], {"attention", global_width, a.query_heads * a.head_dim}},
       letters.Output("rn", ShardHow::kContiguous),
       {}},
      {DType::kFloat32, {qkv.dims[0], heads}, letters.Output("rn", ShardHow::kContiguous), {}}};
}

StatusOr<std::vector<ValueType>> InferGrad(const MeshView& mesh, const Attributes& attributes,
                                           Inputs in) {
  const Value &d_output = *in[0], &qkv = *in[1], &output = *in[2], &lse = *in[3];
  const auto& a = std::get<AttentionAttributes>(attributes);
  TROUPE_RETURN_IF_ERROR(ExpectType(d_output, qkv.dtype, 2));
  TROUPE_RETURN_IF_ERROR(ExpectType(lse, DType::kFloat32, 2));
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters letters,
                          ShardedLetters::Of({{&d_output, "rn", true, ShardHow::kContiguous},
                                              {&qkv, "rn", true, ShardHow::kSegments},
                                              {&output, "rn", true, ShardHow::kContiguous},
                                              {&lse, "rn", true, ShardHow::kContiguous}}));
  TROUPE_RETURN_IF_ERROR(CheckHeads(a, qkv));
  TROUPE_RETURN_IF_ERROR(CheckDocuments(a, qkv, in, 4));
  for (const int dim : {0, 1}) TROUPE_RETURN_IF_ERROR(ExpectSameExtent(d_output, dim, output, dim));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(qkv, 0, output, 0));
  return std::vector<ValueType>{
      {qkv.dtype, qkv.dims, letters.Output("rn", ShardHow::kSegments), qkv.segments}};
}

Status Differentiate(const Op& op, GradientContext& context) {
  const ValueId qkv = op.inputs[0], output = op.outputs[0], lse = op.outputs[1];
  std::vector<ValueId> inputs = {context.GradientOf(output), qkv, output, lse};
  if (op.inputs.size() > 1) inputs.push_back(op.inputs[1]);
  return context.Emit(OpKind::kAttentionGrad, op.attributes, inputs, {qkv});
}

// Two matmuls of 2·pairs·D per head. Model FLOPs count T²/2 pairs per sample, also with documents,
// whose pairs depend on the data; the report of a step counts the actual pairs.
double ForwardFlops(const Op& op, const Program& program) {
  const auto& a = std::get<AttentionAttributes>(op.attributes);
  const Value& qkv = program.value(op.inputs[op.kind == OpKind::kAttention ? 0 : 1]);
  const double samples = static_cast<double>(qkv.dims[0].local) / static_cast<double>(a.tokens);
  const double pairs = static_cast<double>(a.tokens) * static_cast<double>(a.tokens) / 2;
  return 4.0 * samples * pairs * static_cast<double>(a.query_heads * a.head_dim);
}

double BackwardFlops(const Op& op, const Program& program) { return 2 * ForwardFlops(op, program); }

// Per thread: a tile of scores, of their gradient, and accumulators for q, k and v of one head, in
// float32.
int64_t Scratch(const Op& op, const Program& program, int threads) {
  const auto& a = std::get<AttentionAttributes>(op.attributes);
  constexpr int64_t kTile = 64;
  const int64_t rows = std::max<int64_t>(kTile, a.tokens);
  return threads * int64_t{sizeof(float)} * (2 * kTile * rows + 6 * rows * a.head_dim);
}

}  // namespace

OpRules AttentionRules() {
  return {.infer = Infer,
          .differentiate = Differentiate,
          .model_flops = ForwardFlops,
          .scratch_bytes = Scratch};
}
OpRules AttentionGradRules() {
  return {.infer = InferGrad, .model_flops = BackwardFlops, .scratch_bytes = Scratch};
}

}  // namespace troupe::model
