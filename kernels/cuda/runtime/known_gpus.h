// Peak rates of known GPUs, dense, from their vendors' data sheets. An unknown GPU has no peak and
// therefore no MFU.
#ifndef TROUPE_KERNELS_CUDA_RUNTIME_KNOWN_GPUS_H_
#define TROUPE_KERNELS_CUDA_RUNTIME_KNOWN_GPUS_H_

#include <string_view>

namespace troupe::kernels::cuda {

// Floating-point operations per second; 0 if unknown.
struct GpuPeak {
  double float32 = 0;  // without tensor cores, like our float32
  double bfloat16 = 0;
};

// Looks up a GPU by the driver's name for it, such as "NVIDIA H100 80GB HBM3".
GpuPeak KnownGpuPeak(std::string_view name);

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_RUNTIME_KNOWN_GPUS_H_
