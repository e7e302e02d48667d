#include "kernels/cuda/libraries/device_attention.h"

#include "base/log.h"
#include "kernels/cuda/libraries/cudnn_attention.h"

namespace troupe::kernels::cuda {

StatusOr<std::unique_ptr<DeviceAttention>> DeviceAttention::Make(
    CudaDevice& device, FileSystem& files, const DeviceAttentionOptions& options) {
  StatusOr<CudnnAttention> cudnn = MakeCudnnAttention(device, {});
  if (!cudnn.ok()) {
    LogWarning("cuda", "all attention uses our own kernels: {}", Message(cudnn.status()));
    return cudnn.status();
  }
  return std::unique_ptr<DeviceAttention>(
      new DeviceAttention(device, std::move(cudnn->library), files, options.tune,
                          {.tuning_cache_folder = options.tuning_cache_folder,
                           .owner = {device.facts().name, cudnn->version}}));
}

}  // namespace troupe::kernels::cuda
