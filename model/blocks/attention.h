// Block A: pre-norm causal grouped-query attention, within documents if they are given, with RoPE
// and a residual.
//
//   y = x + ReduceRows(o_proj(attention(rope(qkv_proj(CopyRows(norm(x)))))))
//
// qkv_proj is column-parallel over tensor; its segments q, k and v are each sharded separately by
// whole heads. o_proj is row-parallel and returns Partial(sum). If the tensor degree is a multiple
// of the key and value heads, q_proj and kv_proj are separate parameters, and neighbours on tensor
// share a head of kv_proj (model/program/shared_heads.h).
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
  int64_t samples;    // per microbatch
  int64_t tokens;     // per sample, over all context ranks
  DropoutPolicy dropout;  // applied to the block's output before the residual
  // Over context: keys and values travel round a ring; otherwise rows are exchanged against heads.
  bool ring = false;
  DType buffer = DType::kFloat32;  // dtype of RopeAttributes
};
// Returns y c[R,H]. REQUIRES: the tensor degree divides the query heads; without a ring tensor ×
// context divides them. The same holds for key and value heads, but if context is 1 or a ring they
// may instead divide the tensor degree.
ValueId BuildAttention(ProgramBuilder& builder, const ModelConfig& config, int block,
                       const AttentionInputs& inputs);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_BLOCKS_ATTENTION_H_
