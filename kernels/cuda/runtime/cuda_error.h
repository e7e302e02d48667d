// Converts errors of the CUDA runtime to Status.
#ifndef TROUPE_KERNELS_CUDA_RUNTIME_CUDA_ERROR_H_
#define TROUPE_KERNELS_CUDA_RUNTIME_CUDA_ERROR_H_

#include <cuda_runtime_api.h>

#include <string_view>

#include "base/status.h"

namespace troupe::kernels::cuda {

// "`what`: cudaErrorX: its text". RESOURCE_EXHAUSTED if memory is lacking, UNAVAILABLE if no GPU
// can be used (none installed, driver missing or too old), otherwise INTERNAL; with the device's
// loss attached (device_loss.h) if after this error the process must end. OK for cudaSuccess.
Status FromCuda(cudaError_t error, std::string_view what);

// Same as FromCuda, and clears the error that the runtime stores for this thread.
Status CheckCuda(cudaError_t error, std::string_view what);

// Whether all further calls of this process fail with this error.
bool LosesDevice(cudaError_t error);

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_RUNTIME_CUDA_ERROR_H_
