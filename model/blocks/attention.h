// Block A: pre-norm causal grouped-query attention, within documents where they are given, with RoPE
// and a residual.
//
//   y = x + ReduceRows(o_proj(attention(rope(qkv_proj(CopyRows(norm(x)))))))
//
// qkv_proj is column-parallel over tensor, its segments q, k, v each sharded by itself (whole
// heads); o_proj is row-parallel and gives Partial(sum).
#ifndef TROUPE_MODEL_BLOCKS_ATTENTION_H_
#define TROUPE_MODEL_BLOCKS_ATTENTION_H_

#include "model/config.h"
#include "model/blocks/dropout.h"
#include "model/program/builder.h"

namespace troupe::model {

struct AttentionInputs {
  ValueId x;          // c[R,H]
  ValueId positions;  // i[R]
  ValueId documents;  // i[R] of whole samples (see Mask), or kNoValue: a sample is one document
  int64_t samples;    // of a microbatch
  int64_t tokens;     // of each sample, over all context ranks
  DropoutPolicy dropout;  // of what is added to x
  bool ring = false;  // over context keys and values go round; else rows are exchanged against heads
};
// Returns y c[R,H]. REQUIRES: heads divisible by the degree of tensor, and without a ring by tensor ×
// context.
ValueId BuildAttention(ProgramBuilder& builder, const ModelConfig& config, int block,
                       const AttentionInputs& inputs);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_BLOCKS_ATTENTION_H_
