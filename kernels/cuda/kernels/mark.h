// Marks on streams: they count how often an operation has started and ended, and measure its time.
// They also work in graphs, where host events give no information. Stored in memory that both host
// and device can access.
#ifndef TROUPE_KERNELS_CUDA_KERNELS_MARK_H_
#define TROUPE_KERNELS_CUDA_KERNELS_MARK_H_

#include <cstdint>

#include "kernels/cuda/device_code/launch.h"

namespace troupe::kernels::cuda {

struct MarkWords {
  uint64_t begun = 0, over = 0;
  uint64_t began_nanoseconds = 0;  // start of the current run, by the device's clock
  uint64_t nanoseconds = 0;        // total of all completed runs
};

// One thread each. Begin and end of a mark alternate, in the order of one stream.
KernelLaunch BeginMark(MarkWords* words);
KernelLaunch EndMark(MarkWords* words);

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_KERNELS_MARK_H_
