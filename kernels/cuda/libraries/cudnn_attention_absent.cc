// Used in builds without cuDNN's headers or its front end.
#include "kernels/cuda/libraries/cudnn_attention.h"

namespace troupe::kernels::cuda {

StatusOr<CudnnAttention> MakeCudnnAttention(CudaDevice&, const CudnnAttentionOptions&) {
  return Unimplemented("this build does not have cuDNN's attention");
}

std::string CudnnInUse() { return "no cuDNN"; }

}  // namespace troupe::kernels::cuda
