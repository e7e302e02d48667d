// The three matmuls of a linear layer.
#include "kernels/cuda/device_code/fma_matmul.h"
#include "kernels/cuda/device_code/mma_matmul.h"
#include "kernels/cuda/kernels/kernels.h"

namespace troupe::kernels::cuda {

KernelLaunch Matmul(const MatmulArgs& args, bool bfloat16) {
  return bfloat16 ? MmaMatmul<false>("matmul", args) : FmaMatmul<false>("matmul", args);
}

}  // namespace troupe::kernels::cuda
