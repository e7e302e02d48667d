// The architecture that a build's CUDA kernels are compiled for, and the GPUs that can run them.
#ifndef TROUPE_KERNELS_CUDA_RUNTIME_ARCHITECTURE_H_
#define TROUPE_KERNELS_CUDA_RUNTIME_ARCHITECTURE_H_

#include <string_view>

namespace troupe::kernels::cuda {

// Whether a GPU of compute capability `major`.`minor` can run machine code for sm_`architecture`.
// With a letter ("90a"), only a GPU of that exact capability can; without ("80"), also those of
// later minor versions of the same major version.
// https://docs.nvidia.com/cuda/cuda-c-programming-guide/#binary-compatibility
bool Runs(std::string_view architecture, int major, int minor);

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_RUNTIME_ARCHITECTURE_H_
