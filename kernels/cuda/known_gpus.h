// Peaks of GPUs that are known by name, dense, from their makers' data sheets: an unknown device has no peak, and so no MFU.
#ifndef TROUPE_KERNELS_CUDA_KNOWN_GPUS_H_
#define TROUPE_KERNELS_CUDA_KNOWN_GPUS_H_

#include <string_view>

namespace troupe::kernels::cuda {

// Floating-point operations per second; 0 where unknown.
struct GpuPeak {
  double float32 = 0;  // without tensor cores, as our float32 is
  double bfloat16 = 0;
};

// Of the driver's name for it, such as "NVIDIA H100 80GB HBM3".
GpuPeak KnownGpuPeak(std::string_view name);

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_KNOWN_GPUS_H_
