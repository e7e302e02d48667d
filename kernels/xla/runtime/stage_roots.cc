#include "kernels/xla/runtime/stage_roots.h"

namespace troupe::kernels::xla {

using model::Op;
using model::ValueId;

std::set<ValueId> RootsUsed(const StagePrograms& stage, const StageOps& ops, size_t begin,
                            size_t end) {
  std::set<ValueId> roots;
  for (size_t i = begin; i < end; ++i) {
    for (int p = 0; p < stage.ranks(); ++p) {
      const Op* const op = ops[i].of_rank[p];
      if (op == nullptr) continue;
      ForEachValue(stage.program(p), *op, [&](ValueId id) {
        int64_t offset = 0;
        roots.insert(RootOf(stage.program(p), id, &offset));
      });
    }
  }
  return roots;
}

}  // namespace troupe::kernels::xla
