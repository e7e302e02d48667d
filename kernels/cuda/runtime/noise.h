// Random numbers for benchmarks: with zeros, or numbers of few significant bits, a GPU could clock
// higher than in training.
#ifndef TROUPE_KERNELS_CUDA_RUNTIME_NOISE_H_
#define TROUPE_KERNELS_CUDA_RUNTIME_NOISE_H_

#include <cstdint>

#include "base/status.h"
#include "kernels/cuda/runtime/device.h"

namespace troupe::kernels::cuda {

// Fills device memory with bfloat16 or float32 numbers from [-1, 1), which repeat after 4 MiB. The
// copies are complete on return.
Status FillWithNoise(Device& device, char* memory, int64_t bytes, bool bfloat16);

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_RUNTIME_NOISE_H_
