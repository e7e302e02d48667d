// The final norm, the vocabulary-parallel head and the cross-entropy, in explicit row chunks: the
// logits of only one chunk exist at a time.
//
//   for each chunk of rows:
//     logits = matmul(CopyRows(norm(x))[rows], table)           Shard over vocabulary
//     max, sums = softmax_stats(logits)                      local statistics
//     totals += cross_entropy(AllReduce(max), AllReduce(softmax_rescale(sums)), weights)
//
// On one tensor rank, a fused operation reads and writes the logits once:
//     d_logits, max, sums = softmax_stats_and_grad(logits)
//     totals += cross_entropy(max, sums, weights)
//
// With several chunks, passes/hoist_head moves each chunk's gradient operations directly after its
// forward operations.
#ifndef TROUPE_MODEL_BLOCKS_HEAD_H_
#define TROUPE_MODEL_BLOCKS_HEAD_H_

#include "model/blocks/config.h"
#include "model/program/builder.h"

namespace troupe::model {

// Chunks have at least `chunk_rows` rows: smaller ones would read the table and update its gradient
// too often.
int NumHeadChunks(int64_t rows, int64_t chunk_rows);

struct HeadInputs {
  ValueId x;        // c[R,H]
  ValueId table;    // c[V,H], unsharded
  ValueId norm;     // f[H], unsharded
  ValueId targets;  // i[R]
  ValueId weights;  // f[R]
  ValueId totals;   // d[2] +=
  double z_loss_coef = 0;
  int64_t chunk_rows = 1024;  // minimum per chunk
};
void BuildHead(ProgramBuilder& builder, const ModelConfig& config, const HeadInputs& inputs);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_BLOCKS_HEAD_H_
