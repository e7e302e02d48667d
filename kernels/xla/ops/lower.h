// Lowers an operation of any kind.
#ifndef TROUPE_KERNELS_XLA_OPS_LOWER_H_
#define TROUPE_KERNELS_XLA_OPS_LOWER_H_

#include "base/status.h"
#include "kernels/xla/ops/ranks.h"

namespace troupe::kernels::xla {

// Lowers the operation as the ranks of the slice have it: appends to their text, and changes
// nothing else. Errors: UNIMPLEMENTED, which names the operation; the text is then of no use. Texts
// of different slices may be written by several threads at once.
Status Lower(Ranks& ranks);

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_OPS_LOWER_H_
