// Converts a job and its plan to the inputs from which model/ builds stage programs. Planner and
// worker share it, so that both build the same program. Pure.
#ifndef TROUPE_PLAN_VALIDATE_STAGE_INPUTS_H_
#define TROUPE_PLAN_VALIDATE_STAGE_INPUTS_H_

#include <vector>

#include "base/status.h"
#include "model/blocks/build_options.h"
#include "model/blocks/config.h"
#include "plan/job/job_choices.h"
#include "plan/layout/mesh.h"
#include "plan/schedules/schedule.h"
#include "plan/validate/batch.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// INVALID_ARGUMENT where the pattern does not parse. REQUIRES: defaults are filled in.
StatusOr<model::ModelConfig> MakeModelConfig(const v1::ModelSpec& spec);

// A list of globs over tensors' names, as model/ takes it.
std::vector<std::string> GlobsOf(const google::protobuf::RepeatedPtrField<std::string>& globs);

// True where experts are distributed over expert × tensor; false where the weights of each expert
// are sharded over tensor.
bool SpreadsExpertsOverTensor(const v1::ParallelismSpec& parallelism);

BatchGeometry MakeBatchGeometry(const v1::TrainingSpec& training, const Mesh& mesh);

// `choices` are those of `spec`, whose defaults are filled in.
model::OptimizerConfig OptimizerConfigOf(const v1::JobSpec& spec, const JobChoices& choices);

// The options from which the program of `rank` is built. INVALID_ARGUMENT for a rank that the plan
// does not have. REQUIRES: `plan` is a plan of `spec`; the defaults of `spec` are filled in.
StatusOr<model::BuildOptions> MakeStageBuildOptions(const v1::JobSpec& spec, const v1::Plan& plan,
                                                    int rank);

// The inputs of a pipe rank's memory plan.
struct LiveMicrobatches {
  std::vector<int> of_chunk;    // live at once, by chunk of the rank, ascending
  bool split_backward = false;  // some action of its schedule runs I and W apart
};

LiveMicrobatches CountLiveMicrobatches(const std::vector<Action>& actions_of_rank);
// INVALID_ARGUMENT where the plan's schedule does not parse.
StatusOr<LiveMicrobatches> CountLiveMicrobatches(const v1::Plan& plan, int pipe_rank);

}  // namespace troupe

#endif  // TROUPE_PLAN_VALIDATE_STAGE_INPUTS_H_
