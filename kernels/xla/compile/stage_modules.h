// The compiled programs of a rank's stage: its pieces, cut at the collectives between ranks, as
// XlaExecutable runs them.
#ifndef TROUPE_KERNELS_XLA_COMPILE_STAGE_MODULES_H_
#define TROUPE_KERNELS_XLA_COMPILE_STAGE_MODULES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/xla/runtime/segment.h"
#include "model/program/memory_plan.h"
#include "model/program/program.h"

namespace troupe::kernels::xla {

struct StageProgram {
  std::string name;  // "chunk 0 forward, rms_norm … to matmul …"
  std::string module;
  // Bytes of the tensors that the program names, as the host sees them: arguments, and results that
  // take over no argument's memory.
  int64_t argument_bytes = 0, new_result_bytes = 0;
  // Bytes of the temporary values of its piece that exist before or after it runs, whether it uses
  // them or not.
  int64_t piece_bytes = 0;
};

// Writes the programs of `program` that a step and its initialization run, in order; not those of
// evaluations. Equal modules occur as often as they are run. Errors: UNIMPLEMENTED, which names an
// operation that is not lowered. Pure.
StatusOr<std::vector<StageProgram>> WriteStagePrograms(const model::Program& program,
                                                       const model::MemoryPlan& plan);

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_COMPILE_STAGE_MODULES_H_
