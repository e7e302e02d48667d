// Attention by chunks of queries: each chunk sees the keys up to its last position, and no others
// are computed. Whole attention and the parts of ring attention differ only in which positions of a
// sample the rank's queries and keys have. QueryChunks and ChunkSize are pure; the other functions
// append to the text and change nothing else.
#ifndef TROUPE_KERNELS_XLA_OPS_ATTENTION_CHUNKS_H_
#define TROUPE_KERNELS_XLA_OPS_ATTENTION_CHUNKS_H_

#include <cstdint>
#include <optional>
#include <vector>

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
  std::optional<Tensor> documents;  // i[B,Tq]: the first position that a query sees
};

// Queries [begin, end) and the number of keys that the last of them sees, which may be 0.
struct QueryChunk {
  int64_t begin = 0, end = 0, keys = 0;
};
// Chunks of at most `most` queries, none of which spans head and tail rows.
std::vector<QueryChunk> QueryChunks(const model::ContextRows& queries,
                                    const model::ContextRows& keys, int64_t most);
// The size of a chunk for samples of `tokens` rows.
int64_t ChunkSize(int64_t tokens);

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
