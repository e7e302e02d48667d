// A GPU's library attention, in addition to our own kernels: cuDNN if it is installed, where it is
// faster.
#ifndef TROUPE_KERNELS_CUDA_LIBRARIES_DEVICE_ATTENTION_H_
#define TROUPE_KERNELS_CUDA_LIBRARIES_DEVICE_ATTENTION_H_

#include <memory>
#include <string>
#include <utility>

#include "base/file_system.h"
#include "base/status.h"
#include "kernels/cuda/libraries/attention_timing.h"
#include "kernels/cuda/libraries/tuned_attention.h"
#include "kernels/cuda/runtime/cuda_device.h"

namespace troupe::kernels::cuda {

struct DeviceAttentionOptions {
  bool tune = true;                 // time both; otherwise cuDNN computes all that it can
  std::string tuning_cache_folder;  // folder of the tuning cache; empty: nothing is stored
};

class DeviceAttention : public AttentionLibrary {
 public:
  // `device` and `files` must outlive this object, and this object the operations it prepares. An
  // error states why cuDNN is not available; our own kernels then compute all attention.
  static StatusOr<std::unique_ptr<DeviceAttention>> Make(CudaDevice& device, FileSystem& files,
                                                         const DeviceAttentionOptions& options);

  // Number of implementations that came from the tuning cache.
  int64_t tuning_cache_hits() const { return tuned_.tuning_cache_hits(); }

  StatusOr<std::unique_ptr<LibraryAttention>> Prepare(const LibraryAttentionShape& shape) override {
    return tuned_.Prepare(shape);
  }
  StatusOr<std::unique_ptr<LibraryAttentionGrad>> PrepareGrad(
      const LibraryAttentionShape& shape) override {
    return tuned_.PrepareGrad(shape);
  }

 private:
  DeviceAttention(CudaDevice& device, std::unique_ptr<AttentionLibrary> library, FileSystem& files,
                  bool tune, const TunedAttentionOptions& options)
      : library_(std::move(library)),
        timing_(device),
        tuned_(*library_, tune ? &timing_ : nullptr, files, options) {}

  std::unique_ptr<AttentionLibrary> library_;
  DeviceAttentionTiming timing_;
  TunedAttention tuned_;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_LIBRARIES_DEVICE_ATTENTION_H_
