// The three matmuls of several experts, each over the expert's rows, whose numbers are counts in
// device memory.
#include "kernels/cuda/device_code/fma_product.h"
#include "kernels/cuda/device_code/mma_product.h"
#include "kernels/cuda/kernels/kernels.h"

namespace troupe::kernels::cuda {

KernelLaunch GroupedMatmul(const ProductArgs& args, bool bfloat16) {
  return bfloat16 ? MmaProduct<true>("grouped_matmul", args)
                  : FmaProduct<true>("grouped_matmul", args);
}

}  // namespace troupe::kernels::cuda
