// Attention by chunks of queries: each chunk sees the keys up to its last position, and no others
// are computed (model/program/attention_chunks.h). Whole attention and the parts of ring attention
// differ only in which positions of a sample the rank's queries and keys have. The functions append
// to the text and change nothing else.
#ifndef TROUPE_KERNELS_XLA_OPS_ATTENTION_CHUNKS_H_
#define TROUPE_KERNELS_XLA_OPS_ATTENTION_CHUNKS_H_

#include <cstdint>
#include <optional>

#include "kernels/xla/text/function.h"
#include "model/program/context_rows.h"
#include "model/program/op.h"

namespace troupe::kernels::xla {

// Dims: B samples, Tq and Tk rows that the rank holds of each sample, G key heads, M query heads of
// each of them, D head dim.
struct AttentionOperands {
  model::AttentionAttributes attributes;
  model::ContextRows query_rows, key_rows;
  Element compute = Element::kF32;  // type of the operands of the large matmuls
  Tensor q;                         // [B,Tq,G,M,D]
  Tensor k, v;                      // [B,Tk,G,D]
  // i[B,Tq]: the first position that a query sees. Present if the mask is kDocument.
  std::optional<Tensor> documents;
};

struct AttentionResult {
  Tensor output;  // f[B,Tq,G,M,D]
  Tensor lse;     // f[B,Tq,G,M]
};
// `before`: the result for the keys of earlier parts, which is merged.
AttentionResult AttentionForward(Function& text, const AttentionOperands& of,
                                 const std::optional<AttentionResult>& before);

struct AttentionGradient {
  Tensor q;     // f[B,Tq,G,M,D]
  Tensor k, v;  // f[B,Tk,G,D]
};
// `doutput` and `output` [B,Tq,G,M,D]; `lse` is that of the whole softmax.
AttentionGradient AttentionBackward(Function& text, const AttentionOperands& of,
                                    const Tensor& doutput, const Tensor& output, const Tensor& lse);

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_OPS_ATTENTION_CHUNKS_H_
