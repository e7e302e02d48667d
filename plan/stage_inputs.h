// From a job and its plan to what model/ builds stage programs of: shared by planner and worker, so that both build
// the same program. Pure.
#ifndef TROUPE_PLAN_STAGE_INPUTS_H_
#define TROUPE_PLAN_STAGE_INPUTS_H_

#include "base/status.h"
#include "model/config.h"
#include "plan/batch.h"
#include "plan/mesh.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// INVALID_ARGUMENT where the pattern does not parse. REQUIRES: defaults are filled in.
StatusOr<model::ModelConfig> MakeModelConfig(const v1::ModelSpec& spec);

BatchGeometry MakeBatchGeometry(const v1::TrainingSpec& training, const Mesh& mesh);

}  // namespace troupe

#endif  // TROUPE_PLAN_STAGE_INPUTS_H_
