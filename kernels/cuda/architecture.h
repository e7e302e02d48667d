// What the CUDA kernels of a build are compiled for, and which GPUs run that.
#ifndef TROUPE_KERNELS_CUDA_ARCHITECTURE_H_
#define TROUPE_KERNELS_CUDA_ARCHITECTURE_H_

#include <string_view>

namespace troupe::kernels::cuda {

// Whether a GPU of compute capability `major`.`minor` runs machine code of sm_`architecture`. "90a": of that capability
// alone; "80": of that one and later ones of the same major number.
// https://docs.nvidia.com/cuda/cuda-c-programming-guide/#binary-compatibility
bool Runs(std::string_view architecture, int major, int minor);

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_ARCHITECTURE_H_
