// Sums of float32 whose terms travel as bfloat16, in the order of the host's (collective/reduction.h, SumFloat32AsBfloat16):
// a block's owner begins with its own term as it is and adds those of the ranks before it, the nearest first.
#ifndef TROUPE_KERNELS_CUDA_PACKED_SUM_H_
#define TROUPE_KERNELS_CUDA_PACKED_SUM_H_

#include <cstdint>

#include "kernels/cuda/launch.h"

namespace troupe::kernels::cuda {

struct SumPackedArgs {
  const float* own;    // f[count]
  const void* others;  // bf16[ranks-1][count]: of the other ranks in their order
  float* sum;          // f[count], may be own; or null
  void* packed;        // bf16[count]: the sum rounded; or null
  int64_t count;
  int ranks, rank;
};
// REQUIRES: count > 0.
KernelLaunch SumPacked(const SumPackedArgs& args);

// y = x, from bfloat16 to float32. REQUIRES: count > 0.
KernelLaunch Unpack(const void* x, float* y, int64_t count);

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_PACKED_SUM_H_
