// Where a model is cut into the chunks of its pipeline. Pure.
#ifndef TROUPE_PLAN_CUT_MODEL_H_
#define TROUPE_PLAN_CUT_MODEL_H_

#include "base/status.h"
#include "model/config.h"
#include "plan/partition.h"
#include "plan/schedules/schedule.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// Into so many `pieces`: by the FLOPs of blocks and head and what the embedding moves, or at the
// job's split points. INVALID_ARGUMENT where there are fewer blocks than pieces or the split points
// do not make as many. REQUIRES: `model` is that of `spec`.
StatusOr<Partition> CutModel(const v1::JobSpec& spec, const model::ModelConfig& model, int pieces);

// Adds the chunks of `schedule`, and what the plan says of the whole model: imbalance, parameters, FLOPs. INVALID_ARGUMENT
// as CutModel.
Status AddChunks(const v1::JobSpec& spec, const model::ModelConfig& model, const Schedule& schedule,
                 v1::Plan* plan);

}  // namespace troupe

#endif  // TROUPE_PLAN_CUT_MODEL_H_
