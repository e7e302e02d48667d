// The chunks by which devices of XLA compute attention: kernels/xla/ops/attention_chunks.h lowers
// them, and plan/device/tpu_memory.h knows the memory that they need. Pure.
#ifndef TROUPE_MODEL_PROGRAM_ATTENTION_CHUNKS_H_
#define TROUPE_MODEL_PROGRAM_ATTENTION_CHUNKS_H_

#include <cstdint>
#include <vector>

#include "model/program/context_rows.h"
#include "model/program/op.h"

namespace troupe::model {

// Queries [begin, end) and the number of keys that the last of them sees, which may be 0.
struct QueryChunk {
  int64_t begin = 0, end = 0, keys = 0;
};

struct AttentionChunks {
  int64_t size = 0;  // queries of a chunk at most, and keys of a block
  // None spans head and tail rows.
  std::vector<QueryChunk> chunks;
  // One loop handles all chunks, so that the program has the code of one. Else it has that of each.
  bool loops = false;
  // A chunk reads its keys block by block, in a loop; else all that it sees at once.
  bool by_blocks = false;
};

// The chunks of the rows `queries` of each sample, which attend to the rows `keys`.
AttentionChunks ChunksOf(const AttentionAttributes& attention, const ContextRows& queries,
                         const ContextRows& keys);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_ATTENTION_CHUNKS_H_
