// From a job and its plan to what model/ builds stage programs of: shared by planner and worker, so that both build
// the same program. Pure.
#ifndef TROUPE_PLAN_STAGE_INPUTS_H_
#define TROUPE_PLAN_STAGE_INPUTS_H_

#include <vector>

#include "base/status.h"
#include "model/build.h"
#include "model/config.h"
#include "plan/batch.h"
#include "plan/mesh.h"
#include "plan/schedules/schedule.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// INVALID_ARGUMENT where the pattern does not parse. REQUIRES: defaults are filled in.
StatusOr<model::ModelConfig> MakeModelConfig(const v1::ModelSpec& spec);

// True where experts are spread over expert × tensor, and not each expert's weights over tensor.
bool SpreadsExpertsOverTensor(const v1::ParallelismSpec& parallelism);

BatchGeometry MakeBatchGeometry(const v1::TrainingSpec& training, const Mesh& mesh);

// What the program of `rank` is built from. INVALID_ARGUMENT for a rank that the plan does not have. REQUIRES: `spec`
// and `plan` belong together; the spec's defaults are filled in.
StatusOr<model::BuildOptions> MakeStageBuildOptions(const v1::JobSpec& spec, const v1::Plan& plan,
                                                    int rank);

// What a pipe rank's memory plan is made for.
struct LiveMicrobatches {
  std::vector<int> of_chunk;    // of each of its chunks, ascending: alive at once
  bool split_backward = false;  // its schedule runs I and W apart somewhere
};

LiveMicrobatches CountLiveMicrobatches(const std::vector<Action>& actions_of_rank);
// INVALID_ARGUMENT where the plan's schedule does not parse.
StatusOr<LiveMicrobatches> CountLiveMicrobatches(const v1::Plan& plan, int pipe_rank);

}  // namespace troupe

#endif  // TROUPE_PLAN_STAGE_INPUTS_H_
