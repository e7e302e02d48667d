// A segment: a run of operations without a collective that leaves the slice, as one StableHLO
// program whose arguments and results are the storage of values (roots: values that are no views).
#ifndef TROUPE_KERNELS_XLA_RUNTIME_SEGMENT_H_
#define TROUPE_KERNELS_XLA_RUNTIME_SEGMENT_H_

#include <vector>

#include "base/status.h"
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

// The roots of temporary and inner values that an operation of the range uses and none after it.
std::vector<model::ValueId> DeadAfter(const StagePrograms& stage, const model::MemoryPlan& plan,
                                      const OpRange& range);

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_RUNTIME_SEGMENT_H_
