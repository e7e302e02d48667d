// What the operations of a program need on a GPU beside the regions of its memory plan: working memory of libraries, and
// of collectives that pack what they send. kernels/cuda holds to the limits and sizes that stand here. Pure.
#ifndef TROUPE_MODEL_PROGRAM_GPU_WORKING_MEMORY_H_
#define TROUPE_MODEL_PROGRAM_GPU_WORKING_MEMORY_H_

#include <cstdint>

#include "model/program/program.h"

namespace troupe::model {

// Of working memory that one product may have (cuBLASLt), bytes.
inline constexpr int64_t kProductWorkspaceBytesMax = int64_t{32} << 20;
// And one attention (cuDNN): enough for 41 samples of 1,024 tokens with 12 heads, or three of 2,048 with 32, so that a
// gradient is few calls that each fill the device.
inline constexpr int64_t kAttentionWorkspaceBytesMax = int64_t{1} << 30;

// Of cuDNN's deterministic gradient of attention in bfloat16, which keeps the gradients of all scores: bytes for one head of
// keys and values of one sample with its heads of queries (`attention`: query_heads, key_value_heads, head_dim, tokens), and
// what a call takes besides.
int64_t AttentionGradHeadBytes(const AttentionAttributes& attention);
inline constexpr int64_t kAttentionGradCallBytes = int64_t{1} << 20;

// At most, of a rank: what one operation after the other has on the compute stream, and on that of communication. Lists
// and partial sums of our own kernels, which have it in their turn, are not counted: they stay below what a product
// may have where there are fewer than 100,000 ids, and come to 64 MiB with 250,000.
int64_t GpuWorkingBytes(const Program& program);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_GPU_WORKING_MEMORY_H_
