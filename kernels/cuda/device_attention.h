// The attention of a GPU beside our own kernels: cuDNN's where it is there, and where it is quicker.
#ifndef TROUPE_KERNELS_CUDA_DEVICE_ATTENTION_H_
#define TROUPE_KERNELS_CUDA_DEVICE_ATTENTION_H_

#include <memory>
#include <string>
#include <utility>

#include "base/file_system.h"
#include "base/status.h"
#include "kernels/cuda/attention_timing.h"
#include "kernels/cuda/chosen_attention.h"
#include "kernels/cuda/cuda_device.h"

namespace troupe::kernels::cuda {

struct DeviceAttentionOptions {
  bool tune = true;            // time both; else cuDNN makes all that it can
  std::string choices_folder;  // of what was found quicker; empty: not kept
};

class DeviceAttention : public AttentionLibrary {
 public:
  // `device` and `files` outlive this, and this what it prepares. The error is why there is no cuDNN: our own kernels
  // make all attention then.
  static StatusOr<std::unique_ptr<DeviceAttention>> Make(CudaDevice& device, FileSystem& files,
                                               const DeviceAttentionOptions& options);

  // Times that were found in the choices' file.
  int64_t choices_found() const { return chosen_.choices_found(); }

  StatusOr<std::unique_ptr<LibraryAttention>> Prepare(const LibraryAttentionShape& shape) override {
    return chosen_.Prepare(shape);
  }
  StatusOr<std::unique_ptr<LibraryAttentionGrad>> PrepareGrad(const LibraryAttentionShape& shape) override {
    return chosen_.PrepareGrad(shape);
  }

 private:
  DeviceAttention(CudaDevice& device, std::unique_ptr<AttentionLibrary> library, FileSystem& files, bool tune,
                  const ChosenAttentionOptions& options)
      : library_(std::move(library)), timing_(device), chosen_(*library_, tune ? &timing_ : nullptr, files, options) {}

  std::unique_ptr<AttentionLibrary> library_;
  DeviceAttentionTiming timing_;
  ChosenAttention chosen_;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_DEVICE_ATTENTION_H_
