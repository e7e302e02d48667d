// The memory of a TPU that a rank needs in addition to its values. Pure.
//
// The figures are those of programs that libtpu 0.0.52 compiled for a TPU v6 lite: two layers of
// llama-1b with 256 tokens, where attention is chunk after chunk, and with 2,048, where it is a
// loop (docs/tpu.md). `troupe plan --compile` states the compiler's own.
#ifndef TROUPE_PLAN_DEVICE_TPU_MEMORY_H_
#define TROUPE_PLAN_DEVICE_TPU_MEMORY_H_

#include <cstdint>

#include "model/program/program.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// Code of an operation, 25 kB for each statement that it is lowered to; of a chunk of queries
// (model/program/attention_chunks.h) in attention and its gradient, as many as whose code one loop
// over all chunks has; and of a parameter's norm and update.
inline constexpr int64_t kTpuOperationCodeBytes = int64_t{192} << 10;
inline constexpr int64_t kTpuAttentionChunkCodeBytes = int64_t{1} << 20;
inline constexpr int64_t kTpuGradientChunkCodeBytes = int64_t{1536} << 10;
inline constexpr int64_t kTpuLoopChunks = 3;
inline constexpr int64_t kTpuParameterCodeBytes = int64_t{1} << 20;

// Memory of the programs while they run, the largest of these:
// - the largest activation in bfloat16 once more, because it exists in float32, and a gradient that
//   several operations of a piece add to, which exists twice;
// - the gradient of a gated unit in bfloat16 twice: its input exists in float32, and the gradient
//   does not replace the input as in the memory plan;
// - what attention computes of one chunk of queries and the keys that it reads at once.
int64_t TpuWorkingBytes(const model::Program& program);

// Memory of the code of forward, backward and update, which stays on the device.
int64_t TpuReserveBytes(const v1::Plan& plan, const model::Program& program);

}  // namespace troupe

#endif  // TROUPE_PLAN_DEVICE_TPU_MEMORY_H_
