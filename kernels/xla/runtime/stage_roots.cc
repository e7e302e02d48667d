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
      ForEachValue(*op, [&](ValueId id) {
        int64_t offset = 0;
        roots.insert(RootOf(stage.program(p), id, &offset));
      });
    }
  }
  return roots;
}

std::set<ValueId> RootsUsedBy(const StagePrograms& stage,
                              const std::function<bool(const Op&)>& use) {
  std::set<ValueId> roots;
  const auto& chunks = stage.program(0).ops;
  for (size_t chunk = 0; chunk < chunks.size(); ++chunk) {
    for (size_t piece = 0; piece < chunks[chunk].size(); ++piece) {
      const StageOps& ops = stage.Ops(static_cast<int>(chunk), static_cast<model::Piece>(piece));
      for (size_t i = 0; i < ops.size(); ++i) {
        if (use(ops[i].any())) roots.merge(RootsUsed(stage, ops, i, i + 1));
      }
    }
  }
  return roots;
}

}  // namespace troupe::kernels::xla
