// The three matmuls of several experts, each over the expert's rows, whose numbers are counts in
// device memory.
#include "kernels/cuda/device_code/fma_matmul.h"
#include "kernels/cuda/device_code/mma_matmul.h"
#include "kernels/cuda/kernels/kernels.h"

namespace troupe::kernels::cuda {

KernelLaunch GroupedMatmul(const MatmulArgs& args, bool bfloat16) {
  return bfloat16 ? MmaMatmul<true>("grouped_matmul", args)
                  : FmaMatmul<true>("grouped_matmul", args);
}

}  // namespace troupe::kernels::cuda
