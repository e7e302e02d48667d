// The three matmuls of a linear layer.
#include "kernels/cuda/device_code/fma_product.h"
#include "kernels/cuda/device_code/mma_product.h"
#include "kernels/cuda/kernels/kernels.h"

namespace troupe::kernels::cuda {

KernelLaunch Matmul(const ProductArgs& args, bool bfloat16) {
  return bfloat16 ? MmaProduct<false>("matmul", args) : FmaProduct<false>("matmul", args);
}

}  // namespace troupe::kernels::cuda
