// A tensor that XLA's compiler keeps in memory. The function appends to the text and changes
// nothing else.
#ifndef TROUPE_KERNELS_XLA_OPS_STORED_H_
#define TROUPE_KERNELS_XLA_OPS_STORED_H_

#include "kernels/xla/text/function.h"

namespace troupe::kernels::xla {

// x itself, stored once. XLA's compiler for processors computes what looks cheap, such as a sum
// that is rounded, again in each of its readers: in a chain of residual gradients that is every
// earlier layer, in each layer. The result of a loop it cannot compute again; this loop has one
// round, which follows from `number`, a scalar of any value, so that the compiler does not know it.
Tensor Stored(Function& text, const Tensor& x, const Tensor& number);

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_OPS_STORED_H_
