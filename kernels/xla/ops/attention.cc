// Causal grouped-query attention over samples of T rows, or over their documents.
#include "kernels/xla/ops/attention_chunks.h"
#include "kernels/xla/ops/lowering.h"

namespace troupe::kernels::xla {
namespace {

using model::ContextRows;

// The operands from qkv [B·T,(Q+2G)D] and, with the document mask, input `documents`.
AttentionOperands OperandsOf(const Lowering& lowering, const Tensor& qkv, size_t documents) {
  Function& text = lowering.text;
  AttentionOperands of;
  of.attributes = lowering.attributes<model::AttentionAttributes>();
  const auto& a = of.attributes;
  const int64_t samples = qkv.shape[0] / a.tokens, groups = a.query_heads / a.key_value_heads;
  const int64_t heads = a.query_heads + 2 * a.key_value_heads;
  of.query_rows = of.key_rows = ContextRows::Of(a.tokens, 1, 0);
  of.compute = qkv.element;
  const Tensor all = text.Reshape(qkv, {samples, a.tokens, heads, a.head_dim});
  of.q = text.Reshape(text.Slice(all, 2, 0, a.query_heads),
                      {samples, a.tokens, a.key_value_heads, groups, a.head_dim});
  of.k = text.Slice(all, 2, a.query_heads, a.query_heads + a.key_value_heads);
  of.v = text.Slice(all, 2, a.query_heads + a.key_value_heads, heads);
  if (a.mask.kind == model::Mask::Kind::kDocument)
    of.documents = text.Reshape(lowering.In(documents), {samples, a.tokens});
  return of;
}

}  // namespace

Status Attention(const Lowering& lowering) {
  const AttentionOperands of = OperandsOf(lowering, lowering.In(0), 1);
  const AttentionResult result = AttentionForward(lowering.text, of, std::nullopt);
  lowering.Out(0, result.output);
  lowering.Out(1, result.lse);
  return OkStatus();
}

Status AttentionGrad(const Lowering& lowering) {
  Function& text = lowering.text;
  const AttentionOperands of = OperandsOf(lowering, lowering.In(1), 4);
  const Shape heads = of.q.shape;
  const AttentionGradient gradient = AttentionBackward(
      text, of, text.Reshape(lowering.Float(0), heads), text.Reshape(lowering.Float(2), heads),
      text.Reshape(lowering.In(3), {heads[0], heads[1], heads[2], heads[3]}));
  const Shape row = {heads[0], heads[1], heads[2] * heads[3], heads[4]};
  lowering.Out(0, text.Concatenate({text.Reshape(gradient.q, row), gradient.k, gradient.v}, 2));
  return OkStatus();
}

}  // namespace troupe::kernels::xla
