// Block A: pre-norm causal grouped-query attention, within documents where they are given, with RoPE
// and a residual.
//
//   y = x + ReduceRows(o_proj(attention(rope(qkv_proj(CopyRows(norm(x)))))))
//
// qkv_proj is column-parallel over tensor, its segments q, k, v each sharded by itself (whole
// heads); o_proj is row-parallel and gives Partial(sum). Where tensor is a multiple of the heads of keys and values,
// q_proj and kv_proj are apart, and neighbours on tensor share a head of the latter (model/program/shared_heads.h).
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
  DType buffer = DType::kFloat32;  // of RopeAttributes
};
// Returns y c[R,H]. REQUIRES: heads divisible by the degree of tensor, and without a ring by tensor ×
// context; those of keys and values may divide the degree of tensor instead, where context is 1 or a ring.
ValueId BuildAttention(ProgramBuilder& builder, const ModelConfig& config, int block,
                       const AttentionInputs& inputs);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_BLOCKS_ATTENTION_H_
