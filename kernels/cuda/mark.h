// Marks on a stream that the host reads without waiting for the device: how often the stream has come to the beginning and to
// the end of something, in graphs too, and how long it took.
#ifndef TROUPE_KERNELS_CUDA_MARK_H_
#define TROUPE_KERNELS_CUDA_MARK_H_

#include <cstdint>

#include "kernels/cuda/launch.h"

namespace troupe::kernels::cuda {

// In pinned memory; zero at first. The device alone writes it.
struct Mark {
  uint64_t begun;
  uint64_t over;
  uint64_t begin_ns;  // by the device's clock, of the last beginning
  uint64_t total_ns;  // of all that are over
};

KernelLaunch BeginMark(Mark* mark);
KernelLaunch EndMark(Mark* mark);

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_MARK_H_
