// The compiled programs of a slice: the groups of pieces of its ranks, cut at the collectives that
// leave it, as XlaExecutable runs them.
#ifndef TROUPE_KERNELS_XLA_COMPILE_STAGE_MODULES_H_
#define TROUPE_KERNELS_XLA_COMPILE_STAGE_MODULES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/xla/runtime/joined_pieces.h"
#include "kernels/xla/runtime/stage_programs.h"
#include "model/program/memory_plan.h"

namespace troupe::kernels::xla {

struct StageProgram {
  std::string name;  // "chunk 0 forward, rms_norm … to matmul …"; "chunk 0 forward to backward, …"
  std::string module;
  // Bytes of the tensors that the program names, as the host sees them: arguments, and results that
  // take over no argument's memory.
  int64_t argument_bytes = 0, new_result_bytes = 0;
  // Bytes of the temporary values of its piece that exist before or after it runs, whether it uses
  // them or not.
  int64_t piece_bytes = 0;
  bool runs_in_step = true;  // otherwise it initializes the job
};

struct StageModules {
  std::vector<StageProgram> programs;
  // Bytes of the values that exist between them, saved ones as often as microbatches are alive.
  int64_t kept_bytes = 0;
};

// Writes the programs of `stage` that a step and its initialization run, in order; not those of
// evaluations. Equal modules occur as often as they are run. Bytes are those of the first rank,
// whose blocks are the largest; `plan` is its plan. Errors: UNIMPLEMENTED, which names an operation
// that is not lowered. Pure.
StatusOr<StageModules> WriteStagePrograms(const StagePrograms& stage, const model::MemoryPlan& plan,
                                          const StepUse& use);

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_COMPILE_STAGE_MODULES_H_
