// Cuts a model into the chunks of its pipeline. Pure.
#ifndef TROUPE_PLAN_COST_CUT_MODEL_H_
#define TROUPE_PLAN_COST_CUT_MODEL_H_

#include "base/status.h"
#include "plan/layout/partition.h"
#include "plan/schedules/schedule.h"
#include "plan/validate/decoded_job.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// Cuts the model into `pieces` pieces: at the job's split points if it has any, else by cost (the
// FLOPs of blocks and head, and the bytes that the embedding moves). INVALID_ARGUMENT where there
// are fewer blocks than pieces or the split points make another number of pieces.
StatusOr<Partition> CutModel(const DecodedJob& job, int pieces);

// Adds the chunks of `schedule` to `plan`, and its figures of the whole model: imbalance,
// parameters, FLOPs. INVALID_ARGUMENT as CutModel.
Status AddChunks(const DecodedJob& job, const Schedule& schedule, v1::Plan* plan);

}  // namespace troupe

#endif  // TROUPE_PLAN_COST_CUT_MODEL_H_
