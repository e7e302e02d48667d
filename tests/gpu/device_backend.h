// The CUDA backend on this machine's first GPU with everything it needs, for the tests of the bare
// binary.
#ifndef TROUPE_TESTS_GPU_DEVICE_BACKEND_H_
#define TROUPE_TESTS_GPU_DEVICE_BACKEND_H_

#include <memory>

#include "kernels/backend/backend.h"
#include "kernels/cuda/libraries/cublaslt_library.h"

namespace troupe::kernels {

// Makes a backend with matmuls of cuBLASLt, configured by `matmuls`, and attention of cuDNN if it
// is installed; null: our own kernels compute both. Ends the process if the device or cuBLASLt
// cannot be opened.
std::unique_ptr<Backend> MakeDeviceBackend(const cuda::CublasLtOptions* matmuls);

}  // namespace troupe::kernels

#endif  // TROUPE_TESTS_GPU_DEVICE_BACKEND_H_
