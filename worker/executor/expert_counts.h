// What the routers of a rank's blocks E have counted in a step, read from their totals.
#ifndef TROUPE_WORKER_EXECUTOR_EXPERT_COUNTS_H_
#define TROUPE_WORKER_EXECUTOR_EXPERT_COUNTS_H_

#include <vector>

#include "base/status.h"
#include "kernels/backend.h"
#include "model/program/program.h"

namespace troupe {

// On the first rank of a pipe stage: choices of each expert in the stage's blocks E over all ranks,
// added to `load`, which is resized; on others nothing. `lanes` is working memory. REQUIRES: after
// Update.
Status ReadExpertLoad(const model::Program& program, kernels::Executable& executable,
                      std::vector<double>* lanes, std::vector<double>* load);

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_EXPERT_COUNTS_H_
