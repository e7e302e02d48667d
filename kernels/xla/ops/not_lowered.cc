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
TROUPE_NOT_LOWERED(RouterLogits)
TROUPE_NOT_LOWERED(RouterLogitsGradInput)
TROUPE_NOT_LOWERED(RouterLogitsGradWeight)
TROUPE_NOT_LOWERED(RouterTopK)
TROUPE_NOT_LOWERED(RouterTopKGrad)
TROUPE_NOT_LOWERED(RouterLoad)
TROUPE_NOT_LOWERED(RouterSlots)
TROUPE_NOT_LOWERED(RouterLoss)
TROUPE_NOT_LOWERED(RouterLossGrad)
TROUPE_NOT_LOWERED(RouterBias)
TROUPE_NOT_LOWERED(Permute)
TROUPE_NOT_LOWERED(PermuteGrad)
TROUPE_NOT_LOWERED(AllToAll)
TROUPE_NOT_LOWERED(GatherRouted)
TROUPE_NOT_LOWERED(ScatterRouted)
TROUPE_NOT_LOWERED(GroupedMatmul)
TROUPE_NOT_LOWERED(GroupedMatmulGradInput)
TROUPE_NOT_LOWERED(GroupedMatmulGradWeight)
TROUPE_NOT_LOWERED(Combine)
TROUPE_NOT_LOWERED(CombineGrad)

#undef TROUPE_NOT_LOWERED

}  // namespace troupe::kernels::xla
