// Converts bfloat16 to float32, element by element.
#ifndef TROUPE_KERNELS_CUDA_KERNELS_WIDEN_H_
#define TROUPE_KERNELS_CUDA_KERNELS_WIDEN_H_

#include <cstdint>

#include "kernels/cuda/device_code/launch.h"

namespace troupe::kernels::cuda {

struct WidenArgs {
  const void* x;  // bf16
  float* y;
  int64_t count;
};
// REQUIRES: the device can access the addresses; count > 0.
KernelLaunch Widen(const WidenArgs& args);

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_KERNELS_WIDEN_H_
