// Chooses in how many parts a microbatch's rows are exchanged between tensor ranks where the job
// does not state it (parallelism.tensor_parallel_parts). More parts overlap with matmuls, but each
// part has its own latency and launches. Pure.
#ifndef TROUPE_PLAN_COST_TENSOR_PARTS_H_
#define TROUPE_PLAN_COST_TENSOR_PARTS_H_

#include "base/status.h"
#include "plan/cost/stage_memo.h"
#include "plan/validate/decoded_job.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// True where ChooseTensorParts has to choose: the job states no number, rows are exchanged, and the
// model's rows can be cut.
bool ChoosesTensorParts(const DecodedJob& job);

// Sets the number with the shortest estimated step, and the reasons; more parts must save at least
// 1% of a step. Changes nothing where ChoosesTensorParts is false. REQUIRES: `plan` is a plan of
// the job of `stages`, with its schedule. INVALID_ARGUMENT as EstimateStepTime.
Status ChooseTensorParts(StageMemo& stages, v1::Plan* plan);

}  // namespace troupe

#endif  // TROUPE_PLAN_COST_TENSOR_PARTS_H_
