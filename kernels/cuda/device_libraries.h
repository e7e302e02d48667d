// The libraries that a device computes with beside our own kernels.
#ifndef TROUPE_KERNELS_CUDA_DEVICE_LIBRARIES_H_
#define TROUPE_KERNELS_CUDA_DEVICE_LIBRARIES_H_

#include <string>

#include "kernels/cuda/attention_library.h"
#include "kernels/cuda/product_library.h"

namespace troupe::kernels::cuda {

// Null: our own kernels make them all.
struct DeviceLibraries {
  ProductLibrary* products = nullptr;
  AttentionLibrary* attention = nullptr;
  // Why the library of attention that is meant to be there is not: its operations are fall-backs then.
  std::string attention_absence;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_DEVICE_LIBRARIES_H_
