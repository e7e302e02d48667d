// Errors of the CUDA runtime as Status.
#ifndef TROUPE_KERNELS_CUDA_CUDA_ERROR_H_
#define TROUPE_KERNELS_CUDA_CUDA_ERROR_H_

#include <cuda_runtime_api.h>

#include <string_view>

#include "base/status.h"

namespace troupe::kernels::cuda {

// "`what`: cudaErrorX: its text". RESOURCE_EXHAUSTED where memory is lacking, UNAVAILABLE where no GPU can be used (none
// there, driver missing or too old), else INTERNAL, with the device's loss (device_loss.h) where the runtime says that the
// process must end. OK for cudaSuccess.
Status FromCuda(cudaError_t error, std::string_view what);

// The same, and forgets the error that the runtime keeps for this thread.
Status CheckCuda(cudaError_t error, std::string_view what);

// Whether every further call of this process fails likewise.
bool LosesDevice(cudaError_t error);

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_CUDA_ERROR_H_
