// The CUDA backend on the emulated device, beside the float64 reference: what its kernels compute, not how soon.
#include <gtest/gtest.h>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/emulated/emulated_device.h"
#include "kernels/kernel_test.h"

namespace troupe::kernels {
namespace {

// With the device that it is over.
class EmulatedBackend : public CudaBackend {
 public:
  EmulatedBackend() : EmulatedBackend(std::make_unique<cuda::emulator::EmulatedDevice>()) {}

 private:
  explicit EmulatedBackend(std::unique_ptr<cuda::emulator::EmulatedDevice> device)
      : CudaBackend(*device, nullptr, nullptr), device_(std::move(device)) {}
  std::unique_ptr<cuda::emulator::EmulatedDevice> device_;
};

KernelSetting Setting(model::DType compute) {
  return {model::Name(compute), compute, [] { return std::make_unique<EmulatedBackend>(); }};
}

INSTANTIATE_TEST_SUITE_P(Emulated, KernelTest,
                         testing::Values(Setting(model::DType::kFloat32),
                                         Setting(model::DType::kBFloat16)),
                         NameOfSetting);

}  // namespace
}  // namespace troupe::kernels
