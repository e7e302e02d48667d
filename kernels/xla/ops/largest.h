// The maximum along a dim, for a softmax. The function appends to the text and changes nothing
// else.
#ifndef TROUPE_KERNELS_XLA_OPS_LARGEST_H_
#define TROUPE_KERNELS_XLA_OPS_LARGEST_H_

#include "kernels/xla/text/function.h"

namespace troupe::kernels::xla {

// The largest elements of x f along its last dim. A NaN may be left out: the sum of exponentials,
// which the caller computes next, keeps it. Compares integers that have the order of the numbers:
// XLA's code for processors reduces them four times faster than floats whose NaNs it must keep.
Tensor Largest(Function& text, const Tensor& x);

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_OPS_LARGEST_H_
