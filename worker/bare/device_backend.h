// The CUDA backend on this machine's first GPU with all that it needs, for the tests of the bare binary.
#ifndef TROUPE_WORKER_BARE_DEVICE_BACKEND_H_
#define TROUPE_WORKER_BARE_DEVICE_BACKEND_H_

#include <memory>

#include "kernels/backend.h"
#include "kernels/cuda/cublaslt_library.h"

namespace troupe::kernels {

// With products of cuBLASLt as `products` says, and attention of cuDNN where it is there; absent: our own kernels alone make
// both. Ends the process where the device or cuBLASLt cannot be opened.
std::unique_ptr<Backend> MakeDeviceBackend(const cuda::CublasLtOptions* products);

}  // namespace troupe::kernels

#endif  // TROUPE_WORKER_BARE_DEVICE_BACKEND_H_
