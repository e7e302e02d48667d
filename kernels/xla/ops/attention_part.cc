// Attention to the keys of one rank of the context axis, merged with the result for the previous
// ranks' keys.
#include "kernels/xla/ops/attention_chunks.h"
#include "kernels/xla/ops/lowering.h"

namespace troupe::kernels::xla {
namespace {

using model::Axis;
using model::ContextRows;

// The rows that a rank holds of x [B,T,…].
Tensor RowsHeld(Function& text, const Tensor& x, const ContextRows& rows) {
  return text.Concatenate({text.Slice(x, 1, rows.head, rows.head + rows.chunk),
                           text.Slice(x, 1, rows.tail, rows.tail + rows.rows - rows.chunk)},
                          1);
}

// The operands from q [B·Tq,QD], kv [B·Tk,2GD] and, with the document mask, input `documents`.
AttentionOperands OperandsOf(const Lowering& lowering, const Tensor& q, const Tensor& kv,
                             size_t documents) {
  Function& text = lowering.text;
  const auto& part = lowering.attributes<model::PartAttributes>();
  AttentionOperands of;
  of.attributes = part.attention;
  const auto& a = of.attributes;
  const int ranks = lowering.program.mesh.degrees[Axis::kContext];
  const int rank = lowering.program.mesh.coordinates[Axis::kContext];
  of.query_rows = ContextRows::Of(a.tokens, ranks, rank);
  of.key_rows = ContextRows::Of(a.tokens, ranks, ((rank - part.shift) % ranks + ranks) % ranks);
  of.compute = q.element;
  const int64_t samples = q.shape[0] / of.query_rows.rows;
  of.q = text.Reshape(q, {samples, of.query_rows.rows, a.key_value_heads,
                          a.query_heads / a.key_value_heads, a.head_dim});
  const Tensor both =
      text.Reshape(kv, {samples, of.key_rows.rows, 2 * a.key_value_heads, a.head_dim});
  of.k = text.Slice(both, 2, 0, a.key_value_heads);
  of.v = text.Slice(both, 2, a.key_value_heads, 2 * a.key_value_heads);
  if (a.mask.kind == model::Mask::Kind::kDocument) {
    of.documents =
        RowsHeld(text, text.Reshape(lowering.In(documents), {samples, a.tokens}), of.query_rows);
  }
  return of;
}

Shape WithoutLast(Shape shape) {
  shape.pop_back();
  return shape;
}

}  // namespace

Status AttentionPart(const Lowering& lowering) {
  Function& text = lowering.text;
  const AttentionOperands of = OperandsOf(lowering, lowering.In(0), lowering.In(1), 2);
  std::optional<AttentionResult> before;
  if (lowering.attributes<model::PartAttributes>().shift > 0) {
    const size_t count = lowering.inputs();
    before = {text.Reshape(lowering.Float(count - 2), of.q.shape),
              text.Reshape(lowering.In(count - 1), WithoutLast(of.q.shape))};
  }
  const AttentionResult result = AttentionForward(text, of, before);
  lowering.Out(0, result.output);
  lowering.Out(1, result.lse);
  return OkStatus();
}

// The probabilities are those of the whole softmax.
Status AttentionPartGrad(const Lowering& lowering) {
  Function& text = lowering.text;
  const AttentionOperands of = OperandsOf(lowering, lowering.In(1), lowering.In(2), 5);
  const AttentionGradient gradient =
      AttentionBackward(text, of, text.Reshape(lowering.Float(0), of.q.shape),
                        text.Reshape(lowering.Float(3), of.q.shape),
                        text.Reshape(lowering.In(4), WithoutLast(of.q.shape)));
  lowering.Out(0, gradient.q);
  lowering.Out(1, text.Concatenate({gradient.k, gradient.v}, 2));
  return OkStatus();
}

}  // namespace troupe::kernels::xla
