// The kinds that are not lowered yet. A job that needs one is refused.
#include "kernels/xla/ops/lowering.h"

namespace troupe::kernels::xla {
namespace {

Status NotLowered(const Lowering& lowering) {
  return Unimplemented("{} is not lowered to XLA", Name(lowering.op.kind));
}

}  // namespace

#define TROUPE_NOT_LOWERED(Kind) \
  Status Kind(const Lowering& lowering) { return NotLowered(lowering); }

TROUPE_NOT_LOWERED(Quantize)
TROUPE_NOT_LOWERED(AmaxHistory)

#undef TROUPE_NOT_LOWERED

}  // namespace troupe::kernels::xla
