// The CUDA backend on an emulated device, for tests.
#ifndef TROUPE_KERNELS_CUDA_EMULATED_EMULATED_BACKEND_H_
#define TROUPE_KERNELS_CUDA_EMULATED_EMULATED_BACKEND_H_

#include <memory>
#include <utility>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/emulated/emulated_device.h"

namespace troupe::kernels::cuda::emulator {

// With the device that it is over.
class EmulatedBackend : public CudaBackend {
 public:
  explicit EmulatedBackend(StreamOrder order = StreamOrder::kComputeFirst)
      : EmulatedBackend(std::make_unique<EmulatedDevice>(order)) {}

  EmulatedDevice& device() { return *device_; }

 private:
  explicit EmulatedBackend(std::unique_ptr<EmulatedDevice> device)
      : CudaBackend(*device, nullptr, nullptr), device_(std::move(device)) {}

  std::unique_ptr<EmulatedDevice> device_;
};

}  // namespace troupe::kernels::cuda::emulator

#endif  // TROUPE_KERNELS_CUDA_EMULATED_EMULATED_BACKEND_H_
