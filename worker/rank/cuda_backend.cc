#include "worker/rank/cuda_backend.h"

#include <utility>

#include "kernels/cuda/cublaslt_library.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/known_gpus.h"

namespace troupe {
namespace {

class CudaRankBackend : public kernels::CudaBackend {
 public:
  CudaRankBackend(std::unique_ptr<kernels::cuda::CudaDevice> device,
                  std::unique_ptr<kernels::cuda::CublasLtLibrary> products)
      : CudaBackend(*device, products.get(), nullptr),
        device_(std::move(device)),
        products_(std::move(products)) {}

 private:
  const std::unique_ptr<kernels::cuda::CudaDevice> device_;
  const std::unique_ptr<kernels::cuda::CublasLtLibrary> products_;  // goes before the device
};

}  // namespace

StatusOr<std::unique_ptr<kernels::Backend>> MakeCudaRankBackend(const RankBackendOptions& options) {
  using kernels::cuda::CublasLtLibrary;
  using kernels::cuda::CudaDevice;
  TROUPE_ASSIGN_OR_RETURN(
      auto device, CudaDevice::Make(options.device, {.wait_limit = options.wait_limit,
                                                     .interruption = options.interruption}));
  TROUPE_ASSIGN_OR_RETURN(
      auto products,
      CublasLtLibrary::Make(*device, *options.files, {.choices_folder = options.folder}));
  return std::make_unique<CudaRankBackend>(std::move(device), std::move(products));
}

StatusOr<std::vector<v1::Device>> ProbeCudaDevices(int count) {
  std::vector<v1::Device> devices;
  for (int i = 0; i < count; ++i) {
    TROUPE_ASSIGN_OR_RETURN(const kernels::cuda::CudaDeviceFacts facts,
                            kernels::cuda::CudaDevice::FactsOf(i));
    v1::Device& device = devices.emplace_back();
    device.set_index(i);
    device.set_id(facts.uuid);
    device.mutable_kind()->set_kind("cuda");
    device.mutable_kind()->set_model(facts.name);
    device.mutable_kind()->set_kernel_level(
        fmt::format("sm_{}{}", facts.capability_major, facts.capability_minor));
    device.mutable_kind()->set_versions(
        fmt::format("driver for CUDA {}; CUDA {}; cuBLASLt {}; troupe {}",
                    kernels::cuda::CudaVersion(facts.driver_version),
                    kernels::cuda::CudaVersion(facts.runtime_version),
                    kernels::cuda::CublasLtVersion(), TROUPE_VERSION));
    device.set_memory_bytes(facts.memory_bytes);
    const kernels::cuda::GpuPeak peak = kernels::cuda::KnownGpuPeak(facts.name);
    device.set_peak_flops_float32(peak.float32);
    device.set_peak_flops_bfloat16(peak.bfloat16);
  }
  return devices;
}

}  // namespace troupe
