// Splits rows of q | k | v into rows of q and rows of k | v, or joins them.
#include "kernels/xla/ops/lowering.h"

namespace troupe::kernels::xla {

Status SplitHeads(const Lowering& lowering) {
  const int64_t q = lowering.Output(0).row_elements(), both = lowering.Input(0).row_elements();
  lowering.Out(0, lowering.text.Slice(lowering.In(0), 1, 0, q));
  lowering.Out(1, lowering.text.Slice(lowering.In(0), 1, q, both));
  return OkStatus();
}

Status JoinHeads(const Lowering& lowering) {
  lowering.Out(0, lowering.text.Concatenate({lowering.In(0), lowering.In(1)}, 1));
  return OkStatus();
}

}  // namespace troupe::kernels::xla
