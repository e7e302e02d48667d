// Attention by cuDNN: bfloat16, forward and gradient, wherever cuDNN 9.16 or later has a plan of the shape on the device.
//
// The gradient is made some samples at a time, or some heads of one, as many as working memory allows: cuDNN's deterministic
// algorithm keeps the gradients of all their scores, 2·Q·T² bytes a sample. Where one head of keys with its queries needs too
// much there is none.
#ifndef TROUPE_KERNELS_CUDA_CUDNN_ATTENTION_H_
#define TROUPE_KERNELS_CUDA_CUDNN_ATTENTION_H_

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "kernels/cuda/attention_library.h"
#include "kernels/cuda/cuda_device.h"
#include "model/program/gpu_working_memory.h"

namespace troupe::kernels::cuda {

struct CudnnAttentionOptions {
  int64_t workspace_limit = model::kAttentionWorkspaceBytesMax;  // bytes of working memory that one attention may have
};

struct CudnnAttention {
  std::unique_ptr<AttentionLibrary> library;
  int64_t version = 0;  // 91900
};

// `device` outlives it, and it what it prepares. Where a shape has no plan it says so in the log, and prepares nothing. Errors
// of LoadCudnn; UNIMPLEMENTED where this build was made without cuDNN's front end; UNAVAILABLE where cuDNN cannot begin.
StatusOr<CudnnAttention> MakeCudnnAttention(CudaDevice& device, const CudnnAttentionOptions& options);

// "cuDNN 9.19.0", or "no cuDNN" where MakeCudnnAttention would not find it.
std::string CudnnInUse();

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_CUDNN_ATTENTION_H_
