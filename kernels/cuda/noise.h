// Random numbers for what is timed: zeros, or numbers with few bits, would let a GPU clock higher than it does in training.
#ifndef TROUPE_KERNELS_CUDA_NOISE_H_
#define TROUPE_KERNELS_CUDA_NOISE_H_

#include <cstdint>

#include "base/status.h"
#include "kernels/cuda/device.h"

namespace troupe::kernels::cuda {

// Fills device memory with numbers from [-1, 1), bfloat16 or float32, that repeat after 4 MiB. Over on return.
Status FillWithNoise(Device& device, char* memory, int64_t bytes, bool bfloat16);

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_NOISE_H_
