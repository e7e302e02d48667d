#include "kernels/xla/ops/lowering.h"

namespace troupe::kernels::xla {

// y[R,N] = x[R,K] wᵀ, w[N,K].
Status Matmul(const Lowering& lowering) {
  lowering.Out(0, lowering.text.Dot(lowering.In(0), lowering.In(1), {.contracted = {{1, 1}}}));
  return OkStatus();
}

// dx[R,K] = dy[R,N] w.
Status MatmulGradInput(const Lowering& lowering) {
  lowering.Out(0, lowering.text.Dot(lowering.In(0), lowering.In(1), {.contracted = {{1, 0}}}));
  return OkStatus();
}

// dw[N,K] += dyᵀ x.
Status MatmulGradWeight(const Lowering& lowering) {
  lowering.Accumulate(0,
                      lowering.text.Dot(lowering.In(0), lowering.In(1), {.contracted = {{0, 0}}}));
  return OkStatus();
}

}  // namespace troupe::kernels::xla
