// The kinds that model/program/op_kinds.def marks as not lowered. A plan that needs one is refused.
#include "kernels/xla/ops/lowering.h"

namespace troupe::kernels::xla {

#define TROUPE_NO_XLA(Kind, reason)                                        \
  Status Kind(const Lowering& lowering) {                                  \
    return Unimplemented("{}: {}", model::Name(lowering.op.kind), reason); \
  }
#include "model/program/op_kinds.def"

}  // namespace troupe::kernels::xla
