// Cuts a model into the chunks of its pipeline. Pure.
#ifndef TROUPE_PLAN_COST_CUT_MODEL_H_
#define TROUPE_PLAN_COST_CUT_MODEL_H_

#include "base/status.h"
#include "model/blocks/config.h"
#include "plan/layout/partition.h"
#include "plan/schedules/schedule.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// Cuts the model into `pieces` pieces: at the job's split points if it has any, else by cost (the
// FLOPs of blocks and head, and the bytes that the embedding moves). INVALID_ARGUMENT where there
// are fewer blocks than pieces or the split points make another number of pieces. REQUIRES: `model`
// is the model of `spec`.
StatusOr<Partition> CutModel(const v1::JobSpec& spec, const model::ModelConfig& model, int pieces);

// Adds the chunks of `schedule` to `plan`, and its figures of the whole model: imbalance,
// parameters, FLOPs. INVALID_ARGUMENT as CutModel.
Status AddChunks(const v1::JobSpec& spec, const model::ModelConfig& model, const Schedule& schedule,
                 v1::Plan* plan);

}  // namespace troupe

#endif  // TROUPE_PLAN_COST_CUT_MODEL_H_
