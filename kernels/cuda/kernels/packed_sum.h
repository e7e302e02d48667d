// float32 sums whose terms are sent as bfloat16, in the same order as on the host
// (collective/reduction.h, SumFloat32AsBfloat16): the owner of a block starts with its own
// unrounded term and adds those of the preceding ranks, nearest first.
#ifndef TROUPE_KERNELS_CUDA_KERNELS_PACKED_SUM_H_
#define TROUPE_KERNELS_CUDA_KERNELS_PACKED_SUM_H_

#include <cstdint>

#include "kernels/cuda/device_code/launch.h"

namespace troupe::kernels::cuda {

struct SumPackedArgs {
  const float* own;    // f[count]
  const void* others;  // bf16[ranks-1][count]: of the other ranks, in rank order
  float* sum;          // f[count], may be own; or null
  void* packed;        // bf16[count]: the rounded sum; or null
  int64_t count;
  int ranks, rank;
};
// REQUIRES: count > 0.
KernelLaunch SumPacked(const SumPackedArgs& args);

// Converts x from bfloat16 to float32. REQUIRES: count > 0.
KernelLaunch Unpack(const void* x, float* y, int64_t count);

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_KERNELS_PACKED_SUM_H_
