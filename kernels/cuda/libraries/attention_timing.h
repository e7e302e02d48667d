// Times a library's attention against our own kernels on a device, with random operands (noise.h).
#ifndef TROUPE_KERNELS_CUDA_LIBRARIES_ATTENTION_TIMING_H_
#define TROUPE_KERNELS_CUDA_LIBRARIES_ATTENTION_TIMING_H_

#include "base/status.h"
#include "kernels/cuda/libraries/tuned_attention.h"
#include "kernels/cuda/runtime/cuda_device.h"

namespace troupe::kernels::cuda {

class DeviceAttentionTiming : public AttentionTiming {
 public:
  // `device` must outlive this object.
  explicit DeviceAttentionTiming(CudaDevice& device) : device_(device) {}

  StatusOr<AttentionSeconds> Time(const LibraryAttentionShape& shape,
                                  LibraryAttention& library) override;
  // Includes the additional work that the library's gradient needs in a program: ordering lse by
  // heads.
  StatusOr<AttentionSeconds> Time(const LibraryAttentionShape& shape,
                                  LibraryAttentionGrad& library) override;

 private:
  CudaDevice& device_;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_LIBRARIES_ATTENTION_TIMING_H_
