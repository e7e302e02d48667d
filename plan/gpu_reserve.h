// What a plan leaves aside of a GPU's memory for others than the rank's own allocations: the driver and NCCL, which take
// theirs by themselves. Pure.
//
// Nothing here is measured: no GPU was at hand. The figures are what is known of the sizes, rounded up.
#ifndef TROUPE_PLAN_GPU_RESERVE_H_
#define TROUPE_PLAN_GPU_RESERVE_H_

#include <cstdint>

#include "model/program/program.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// The CUDA context (about half a GiB on an H100, by what others report), the loaded kernels, ours, cuBLASLt's and cuDNN's,
// the captured graphs of a step, tables that kernels read, and what rounding adds to the regions of the arena.
inline constexpr int64_t kDriverReserveBytes = int64_t{1} << 30;

// A group of several ranks has a communicator of NCCL's own. By NCCL's source a connection has buffers of 9.2 MiB on each
// channel (4 MiB, and 4.7 and 0.5 MiB for short messages), so that a ring of 32 channels has 294 MiB; the rest is for a tree,
// or for the connections between pairs of ranks that an exchange among all has.
inline constexpr int64_t kNcclGroupReserveBytes = int64_t{512} << 20;

// A directed edge of the pipeline has one too, of at most 4 channels (collective/nccl), 18 MiB for what comes in or goes out.
inline constexpr int64_t kNcclEdgeReserveBytes = int64_t{32} << 20;

// Of a rank with `program`, which is a stage of `plan`: for the driver, each group that has a collective, and the two edges of
// each boundary between its chunks and those of other ranks.
int64_t GpuReserveBytes(const v1::Plan& plan, const model::Program& program);

}  // namespace troupe

#endif  // TROUPE_PLAN_GPU_RESERVE_H_
