#include "worker/rank/cuda_backend.h"

#include <atomic>
#include <utility>

#include "base/flag_parser.h"
#include "collective/nccl/nccl_library.h"
#include "collective/nccl/nccl_network.h"
#include "kernels/cuda/libraries/cublaslt_functions.h"
#include "kernels/cuda/libraries/cublaslt_library.h"
#include "kernels/cuda/libraries/cudnn_attention.h"
#include "kernels/cuda/libraries/device_attention.h"
#include "kernels/cuda/runtime/cuda_backend.h"
#include "kernels/cuda/runtime/cuda_device.h"
#include "kernels/cuda/runtime/known_gpus.h"
#include "worker/rank/cuda_nccl_device.h"

namespace troupe {
namespace {

using kernels::cuda::CublasLtLibrary;
using kernels::cuda::CudaDevice;

// NCCL in addition to the host's network; loaded for the first group of several ranks.
class NcclGroups {
 public:
  NcclGroups(CudaDevice& device, const RankBackendOptions& options)
      : device_(device),
        host_(options.network),
        options_{.connect_limit = options.connect_limit,
                 .hang_limit = options.wait_limit,
                 .close_limit = options.close_limit} {}

  StatusOr<std::unique_ptr<DeviceCommunicator>> Make(Communicator& group) {
    if (network_ == nullptr) {
      TROUPE_ASSIGN_OR_RETURN(library_, NcclLibrary::Load());
      network_ = std::make_unique<NcclNetwork>(*library_, device_, *host_, options_);
      made_.store(network_.get(), std::memory_order_release);
    }
    return network_->Make(group);
  }

  bool leaves_behind() const { return network_ != nullptr && network_->leaves_behind(); }

  std::vector<DeviceCollectiveStatistics> Statistics() const {
    return network_ == nullptr ? std::vector<DeviceCollectiveStatistics>() : network_->Statistics();
  }

  // May be called from any thread.
  std::vector<CollectiveFlight> Flights() const {
    const NcclNetwork* const network = made_.load(std::memory_order_acquire);
    return network == nullptr ? std::vector<CollectiveFlight>() : network->Flights();
  }

  // May be called from any thread.
  std::string FlightRecorderJson() const {
    const NcclNetwork* const network = made_.load(std::memory_order_acquire);
    return network == nullptr ? "" : network->FlightRecorderJson();
  }

 private:
  CudaNcclDevice device_;
  CollectiveNetwork* const host_;
  const NcclOptions options_;
  std::unique_ptr<NcclLibrary> library_;
  std::unique_ptr<NcclNetwork> network_;
  std::atomic<const NcclNetwork*> made_ = nullptr;  // network_, once it is made
};

// The objects that a CudaRankBackend uses. It inherits them, so they exist before its base
// CudaBackend.
struct CudaParts {
  std::unique_ptr<CudaDevice> device;
  std::unique_ptr<CublasLtLibrary> matmuls;
  std::unique_ptr<kernels::cuda::DeviceAttention> attention;  // null: no cuDNN
  std::string attention_absence;                              // the reason why `attention` is null
  std::unique_ptr<NcclGroups> groups;
};

class CudaRankBackend : private CudaParts, public kernels::CudaBackend {
 public:
  explicit CudaRankBackend(CudaParts parts)
      : CudaParts(std::move(parts)),
        CudaBackend(*device,
                    {.matmuls = matmuls.get(),
                     .attention = attention.get(),
                     .attention_absence = attention_absence},
                    [this](Communicator& group) { return groups->Make(group); }) {}

  std::vector<DeviceCollectiveStatistics> CollectiveStatistics() const override {
    return groups->Statistics();
  }
  std::vector<CollectiveFlight> Flights() const override { return groups->Flights(); }
  std::string FlightRecorderJson() const override { return groups->FlightRecorderJson(); }
  kernels::PreparationCounts preparation_counts() const override {
    kernels::PreparationCounts counts = CudaBackend::preparation_counts();
    counts.tuning_cache_hits =
        matmuls->tuning_cache_hits() + (attention == nullptr ? 0 : attention->tuning_cache_hits());
    return counts;
  }
  bool releases_device() const override { return !device->is_gone() && !groups->leaves_behind(); }
};

}  // namespace

StatusOr<std::unique_ptr<kernels::Backend>> MakeCudaRankBackend(const RankBackendOptions& options) {
  CudaParts parts;
  // The device's collectives are aborted after the host's network and then end without a result.
  const auto interruption = [given = options.interruption, network = options.network]() -> Status {
    if (given) TROUPE_RETURN_IF_ERROR(given());
    return network == nullptr ? OkStatus() : network->status();
  };
  // The wait limit is doubled so that the watchdog of collectives, which knows the operation that
  // hangs, reports first.
  TROUPE_ASSIGN_OR_RETURN(parts.device,
                          CudaDevice::Make(options.device, {.wait_limit = 2 * options.wait_limit,
                                                            .interruption = interruption}));
  TROUPE_ASSIGN_OR_RETURN(parts.matmuls,
                          CublasLtLibrary::Make(*parts.device, *options.files,
                                                {.tuning_cache_folder = options.tuning_folder}));
  auto attention = kernels::cuda::DeviceAttention::Make(
      *parts.device, *options.files, {.tuning_cache_folder = options.tuning_folder});
  if (attention.ok()) {
    parts.attention = *std::move(attention);
  } else {
    parts.attention_absence = std::string(Message(attention.status()));
  }
  parts.groups = std::make_unique<NcclGroups>(*parts.device, options);
  return std::make_unique<CudaRankBackend>(std::move(parts));
}

StatusOr<std::vector<v1::Device>> ProbeCudaDevices(int count) {
  TROUPE_RETURN_IF_ERROR(kernels::cuda::LoadCublasLt());
  const std::string nccl = NcclInUse();
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
        fmt::format("driver for CUDA {}; CUDA {}; cuBLASLt {}; {}; troupe {}",
                    kernels::cuda::CudaVersion(facts.driver_version),
                    kernels::cuda::CudaVersion(facts.runtime_version),
                    kernels::cuda::CublasLtVersion(), kernels::cuda::CudnnInUse(), kVersion));
    device.mutable_kind()->set_nccl(nccl);
    device.set_memory_bytes(facts.memory_bytes);
    const kernels::cuda::GpuPeak peak = kernels::cuda::KnownGpuPeak(facts.name);
    device.set_peak_flops_float32(peak.float32);
    device.set_peak_flops_bfloat16(peak.bfloat16);
  }
  return devices;
}

}  // namespace troupe
