// A segment: a run of operations without a collective that leaves the slice, as one StableHLO
// program whose arguments and results are the storage of values (roots: values that are no views).
#ifndef TROUPE_KERNELS_XLA_RUNTIME_SEGMENT_H_
#define TROUPE_KERNELS_XLA_RUNTIME_SEGMENT_H_

#include <set>
#include <vector>

#include "base/status.h"
#include "kernels/backend/op_sequence.h"
#include "kernels/xla/runtime/joined_pieces.h"
#include "kernels/xla/runtime/segment_text.h"
#include "kernels/xla/runtime/stage_programs.h"
#include "model/program/memory_plan.h"
#include "model/program/program.h"

namespace troupe::kernels::xla {

// A range of a list's operations.
struct OpRange {
  const StageOps& ops;
  size_t begin = 0, end = 0;
  bool evaluate = false;  // without operations that only the derivative needs
  const ValueUse& values;
};

// Writes the program of a range, the same for all ranks of the stage. Results are the roots that it
// writes and that someone reads later: all but temporary and inner ones, and those of them that a
// later operation of the list reads. Errors: UNIMPLEMENTED, which names the operation, if one is
// not lowered. Pure.
StatusOr<SegmentText> WriteSegment(const StagePrograms& stage, const model::MemoryPlan& plan,
                                   const OpRange& range);

// The roots of the values that operations of the range use.
std::set<model::ValueId> RootsUsed(const StagePrograms& stage, const OpRange& range);

// The roots of temporary and inner values that an operation of the range uses and none after it.
std::vector<model::ValueId> DeadAfter(const StagePrograms& stage, const model::MemoryPlan& plan,
                                      const OpRange& range);

// Whether the plan's schedule runs pieces of this kind: B, or I and W apart.
inline bool RunsInSchedule(model::Piece piece, const model::MemoryPlan& plan) {
  const bool is_half =
      piece == model::Piece::kInputGradient || piece == model::Piece::kWeightGradient;
  return is_half ? plan.split_backward : piece != model::Piece::kBackward || !plan.split_backward;
}

// Calls `use` with every value that an operation reads or writes: inputs, outputs and, for the
// optimizer, the parameters and their states.
template <typename Use>
void ForEachValue(const model::Program& program, const model::Op& op, const Use& use) {
  for (const model::ValueId id : op.inputs) use(id);
  for (const model::ValueId id : op.outputs) use(id);
  if (op.kind != model::OpKind::kAdamW) return;
  for (const model::ParameterEntry& entry : program.parameters) {
    for (const model::ValueId id :
         {entry.value, entry.exp_avg, entry.exp_avg_sq, entry.compute_copy}) {
      use(id);
    }
  }
}

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_RUNTIME_SEGMENT_H_
