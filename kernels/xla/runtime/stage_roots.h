// The values that operations of a stage use, and their roots: the values that are no views.
#ifndef TROUPE_KERNELS_XLA_RUNTIME_STAGE_ROOTS_H_
#define TROUPE_KERNELS_XLA_RUNTIME_STAGE_ROOTS_H_

#include <cstddef>
#include <functional>
#include <set>

#include "kernels/backend/op_sequence.h"
#include "kernels/xla/runtime/stage_programs.h"
#include "model/program/program.h"

namespace troupe::kernels::xla {

// Calls `use` with every value that an operation reads or writes.
template <typename Use>
void ForEachValue(const model::Op& op, const Use& use) {
  for (const model::ValueId id : op.inputs) use(id);
  for (const model::ValueId id : op.outputs) use(id);
}

// Returns the roots of the values that operations [begin, end) of a list use, on any rank.
std::set<model::ValueId> RootsUsed(const StagePrograms& stage, const StageOps& ops, size_t begin,
                                   size_t end);

// The same for those operations of all pieces that `use` selects.
std::set<model::ValueId> RootsUsedBy(const StagePrograms& stage,
                                     const std::function<bool(const model::Op&)>& use);

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_RUNTIME_STAGE_ROOTS_H_
