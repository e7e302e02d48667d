// Sums of float32 over a slice whose terms are sent in bfloat16. Each sum is computed in float32 on
// one rank. The functions append to the text and change nothing else.
#ifndef TROUPE_KERNELS_XLA_OPS_COLLECTIVES_BFLOAT16_WIRE_H_
#define TROUPE_KERNELS_XLA_OPS_COLLECTIVES_BFLOAT16_WIRE_H_

#include "kernels/xla/text/function.h"

namespace troupe::kernels::xla {

// x f[n·b,…] → f[b,…]: this rank's block of the sum over the n ranks of its group, not rounded.
Tensor ScatterOverBfloat16(Function& text, const Tensor& x, const Function::Groups& groups);
// x f[…] → the sum, rounded to bfloat16 and the same on all ranks.
Tensor SumOverBfloat16(Function& text, const Tensor& x, const Function::Groups& groups);

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_OPS_COLLECTIVES_BFLOAT16_WIRE_H_
