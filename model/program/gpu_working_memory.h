// The GPU memory that a program's operations need in addition to the regions of its memory plan:
// workspaces of libraries, and buffers of collectives that pack the data they send. kernels/cuda
// respects these limits and sizes. A CPU has needs of its own: OpRules::scratch_bytes. Pure.
#ifndef TROUPE_MODEL_PROGRAM_GPU_WORKING_MEMORY_H_
#define TROUPE_MODEL_PROGRAM_GPU_WORKING_MEMORY_H_

#include <cstdint>

#include "model/program/program.h"

namespace troupe::model {

// The maximum workspace of one matmul (cuBLASLt), in bytes.
inline constexpr int64_t kMatmulWorkspaceBytesMax = int64_t{32} << 20;
// The maximum workspace of one attention (cuDNN), in bytes: enough for 41 samples of 1,024 tokens
// with 12 heads, or three of 2,048 with 32, so that a gradient needs few calls and each of them
// fills the device.
inline constexpr int64_t kAttentionWorkspaceBytesMax = int64_t{1} << 30;

// Workspace of cuDNN's deterministic attention gradient in bfloat16, which stores the gradients of
// all scores. AttentionGradHeadBytes: the bytes for one key and value head of one sample with its
// query heads (`attention`: query_heads, key_value_heads, head_dim, tokens).
// kAttentionGradCallBytes: additional bytes per call.
int64_t AttentionGradHeadBytes(const AttentionAttributes& attention);
inline constexpr int64_t kAttentionGradCallBytes = int64_t{1} << 20;

// An upper bound of a rank's working memory: the largest need of an operation on the compute stream
// plus the largest on the communication stream. Lists and partial sums of our own kernels, which
// use the same memory at other times, are not counted: they are smaller than the workspace of a
// matmul below 100,000 ids, and reach 64 MiB with 250,000.
int64_t GpuWorkingBytes(const Program& program);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_GPU_WORKING_MEMORY_H_
