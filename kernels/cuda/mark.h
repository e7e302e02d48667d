// Marks on streams: how often they have come to the beginning and the end of an operation, and how long it took, in graphs
// too, where events of the host tell nothing. Kept in memory that host and device both see.
#ifndef TROUPE_KERNELS_CUDA_MARK_H_
#define TROUPE_KERNELS_CUDA_MARK_H_

#include <cstdint>

#include "kernels/cuda/launch.h"

namespace troupe::kernels::cuda {

struct MarkWords {
  uint64_t begun = 0, over = 0;
  uint64_t began_nanoseconds = 0;  // of the run under way, by the device's clock
  uint64_t nanoseconds = 0;        // of all that are over
};

// One thread each. Beginning and end of one mark come by turns, in the order of one stream.
KernelLaunch BeginMark(MarkWords* words);
KernelLaunch EndMark(MarkWords* words);

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_MARK_H_
