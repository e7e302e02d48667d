// The libraries that a device uses in addition to our own kernels.
#ifndef TROUPE_KERNELS_CUDA_RUNTIME_DEVICE_LIBRARIES_H_
#define TROUPE_KERNELS_CUDA_RUNTIME_DEVICE_LIBRARIES_H_

#include <string>

#include "kernels/cuda/runtime/attention_library.h"
#include "kernels/cuda/runtime/matmul_library.h"

namespace troupe::kernels::cuda {

// Null: our own kernels compute all operations of this kind.
struct DeviceLibraries {
  MatmulLibrary* matmuls = nullptr;
  AttentionLibrary* attention = nullptr;
  // The reason for which the attention library is not available although it is expected; its
  // operations then count as fall-backs.
  std::string attention_absence;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_RUNTIME_DEVICE_LIBRARIES_H_
