// The memory of a TPU that a rank needs in addition to its values. Pure.
//
// The figures are those of programs that libtpu 0.0.52 compiled for a TPU v6 lite: layers of
// llama-1b with 256 and with 2,048 tokens (docs/tpu.md). `troupe plan --compile` states the
// compiler's own.
#ifndef TROUPE_PLAN_DEVICE_TPU_MEMORY_H_
#define TROUPE_PLAN_DEVICE_TPU_MEMORY_H_

#include <cstdint>

#include "model/program/program.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// Code of an operation, 25 kB for each statement that it is lowered to; of a chunk of queries, of
// which attention and its gradient have up to 16; and of a parameter's norm and update.
inline constexpr int64_t kTpuOperationCodeBytes = int64_t{192} << 10;
inline constexpr int64_t kTpuAttentionChunkCodeBytes = int64_t{1} << 20;
inline constexpr int64_t kTpuGradientChunkCodeBytes = int64_t{1536} << 10;
inline constexpr int64_t kTpuParameterCodeBytes = int64_t{1} << 20;

// Memory of the programs while they run: the largest activation in bfloat16 exists in float32,
// which is as many bytes again, and a gradient that several operations of a piece add to exists
// twice; or, if it is more, what attention computes of one chunk of queries.
int64_t TpuWorkingBytes(const model::Program& program);

// Memory of the code of forward, backward and update, which stays on the device.
int64_t TpuReserveBytes(const v1::Plan& plan, const model::Program& program);

}  // namespace troupe

#endif  // TROUPE_PLAN_DEVICE_TPU_MEMORY_H_
