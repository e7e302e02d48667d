#include "tests/gpu/device_backend.h"

#include <utility>

#include "base/check.h"
#include "base/file_system.h"
#include "kernels/cuda/libraries/device_attention.h"
#include "kernels/cuda/runtime/cuda_backend.h"
#include "kernels/cuda/runtime/cuda_device.h"

namespace troupe::kernels {
namespace {

struct OnDevice {
  PosixFileSystem files;
  std::unique_ptr<cuda::CudaDevice> device;
  // Null: our own kernels compute matmuls, here and below.
  std::unique_ptr<cuda::CublasLtLibrary> matmuls;
  std::unique_ptr<cuda::DeviceAttention> attention;
};

std::unique_ptr<OnDevice> Open(const cuda::CublasLtOptions* matmuls) {
  auto opened = std::make_unique<OnDevice>();
  auto device = cuda::CudaDevice::Make(0, {});
  TROUPE_CHECK_OK(device.status());
  opened->device = std::move(*device);
  if (matmuls != nullptr) {
    auto library = cuda::CublasLtLibrary::Make(*opened->device, opened->files, *matmuls);
    TROUPE_CHECK_OK(library.status());
    opened->matmuls = std::move(*library);
    auto attention =
        cuda::DeviceAttention::Make(*opened->device, opened->files, {.tune = matmuls->tune});
    if (attention.ok()) opened->attention = *std::move(attention);
  }
  return opened;
}

// A CUDA backend that owns its device and libraries.
class OwningBackend : public CudaBackend {
 public:
  explicit OwningBackend(std::unique_ptr<OnDevice> on)
      : CudaBackend(*on->device, {.matmuls = on->matmuls.get(), .attention = on->attention.get()},
                    nullptr),
        on_(std::move(on)) {}

 private:
  std::unique_ptr<OnDevice> on_;
};

}  // namespace

std::unique_ptr<Backend> MakeDeviceBackend(const cuda::CublasLtOptions* matmuls) {
  return std::make_unique<OwningBackend>(Open(matmuls));
}

}  // namespace troupe::kernels
