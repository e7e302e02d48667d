// Attention by cuDNN in bfloat16, forward and gradient, wherever cuDNN 9.16 or later has a plan for
// the shape on the device.
//
// The gradient is computed for as many samples, or heads of one sample, at a time as the workspace
// limit allows, because cuDNN's deterministic algorithm stores the gradients of all their scores,
// 2·Q·T² bytes per sample. The gradient is not available if a single key head with its query heads
// exceeds the limit.
#ifndef TROUPE_KERNELS_CUDA_LIBRARIES_CUDNN_ATTENTION_H_
#define TROUPE_KERNELS_CUDA_LIBRARIES_CUDNN_ATTENTION_H_

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "kernels/cuda/runtime/attention_library.h"
#include "kernels/cuda/runtime/cuda_device.h"
#include "model/program/gpu_working_memory.h"

namespace troupe::kernels::cuda {

struct CudnnAttentionOptions {
  // The maximum workspace of one attention, in bytes.
  int64_t workspace_limit = model::kAttentionWorkspaceBytesMax;
};

struct CudnnAttention {
  std::unique_ptr<AttentionLibrary> library;
  int64_t version = 0;  // 91900
};

// `device` must outlive the library, and the library the operations it prepares. If a shape has no
// plan, the library logs that and prepares nothing. Errors: those of LoadCudnn; UNIMPLEMENTED if
// this build lacks cuDNN's front end; UNAVAILABLE if cuDNN cannot be initialised.
StatusOr<CudnnAttention> MakeCudnnAttention(CudaDevice& device,
                                            const CudnnAttentionOptions& options);

// "cuDNN 9.19.0", or "no cuDNN" if MakeCudnnAttention would not find it.
std::string CudnnInUse();

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_LIBRARIES_CUDNN_ATTENTION_H_
