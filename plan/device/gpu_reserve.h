// The GPU memory that a plan reserves for allocations outside the rank's own arena: those of the
// driver and of NCCL. Pure.
//
// The figures are not measured; they are derived from published sizes and rounded up.
#ifndef TROUPE_PLAN_DEVICE_GPU_RESERVE_H_
#define TROUPE_PLAN_DEVICE_GPU_RESERVE_H_

#include <cstdint>

#include "model/program/program.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// For the CUDA context (about half a GiB on an H100, as others report), the loaded kernels (ours,
// cuBLASLt's and cuDNN's), the captured graphs of a step, tables that kernels read, and the
// rounding of the arena's regions.
inline constexpr int64_t kDriverReserveBytes = int64_t{1} << 30;

// For the NCCL communicator of a group of several ranks. According to NCCL's source a connection
// has 9.2 MiB of buffers per channel (4 MiB, and 4.7 and 0.5 MiB for short messages), so a ring of
// 32 channels has 294 MiB. The rest is for a tree, or for the connections between pairs of ranks
// that an all-to-all uses.
inline constexpr int64_t kNcclGroupReserveBytes = int64_t{512} << 20;

// For each directed pipeline link: its communicator has at most 4 channels (collective/nccl), 18
// MiB for what is sent or received.
inline constexpr int64_t kNcclLinkReserveBytes = int64_t{32} << 20;

// The reserve for a rank with `program`, which is a stage of `plan`: for the driver, for each group
// that has a collective, and for the two pipeline links of each boundary between its chunks and
// those of other ranks.
int64_t GpuReserveBytes(const v1::Plan& plan, const model::Program& program);

}  // namespace troupe

#endif  // TROUPE_PLAN_DEVICE_GPU_RESERVE_H_
