// Makes the executor's input from a job, its plan and a rank: the bridge between plan/ and model/.
// Pure.
#ifndef TROUPE_WORKER_EXECUTOR_RANK_PROGRAM_H_
#define TROUPE_WORKER_EXECUTOR_RANK_PROGRAM_H_

#include "base/status.h"
#include "model/program/memory_plan.h"
#include "model/program/program.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"
#include "worker/executor/executor.h"

namespace troupe {

struct RankProgram {
  model::Program program;
  model::MemoryPlan memory;
  ExecutorOptions options;
};

// REQUIRES: `plan` was made for `spec`, and the spec's defaults are filled in.
StatusOr<RankProgram> MakeRankProgram(const v1::JobSpec& spec, const v1::Plan& plan, int rank);

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_RANK_PROGRAM_H_
