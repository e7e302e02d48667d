// The CUDA backend on an emulated device that it owns; the host executes its collectives.
#ifndef TROUPE_KERNELS_CUDA_EMULATED_EMULATED_BACKEND_H_
#define TROUPE_KERNELS_CUDA_EMULATED_EMULATED_BACKEND_H_

#include <memory>
#include <utility>

#include "kernels/cuda/emulated/emulated_device.h"
#include "kernels/cuda/emulated/host_collectives.h"
#include "kernels/cuda/runtime/cuda_backend.h"

namespace troupe::kernels {

class EmulatedBackend : public CudaBackend {
 public:
  explicit EmulatedBackend(
      cuda::emulator::StreamOrder order = cuda::emulator::StreamOrder::kComputeFirst,
      const cuda::DeviceLibraries& libraries = {})
      : EmulatedBackend(std::make_unique<cuda::emulator::EmulatedDevice>(order), libraries) {}

  cuda::emulator::EmulatedDevice& device() { return *device_; }

 private:
  EmulatedBackend(std::unique_ptr<cuda::emulator::EmulatedDevice> device,
                  const cuda::DeviceLibraries& libraries)
      : CudaBackend(*device, libraries,
                    [&device = *device](Communicator& host) {
                      return std::make_unique<cuda::emulator::HostCollectives>(device, host);
                    }),
        device_(std::move(device)) {}

  std::unique_ptr<cuda::emulator::EmulatedDevice> device_;
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_CUDA_EMULATED_EMULATED_BACKEND_H_
