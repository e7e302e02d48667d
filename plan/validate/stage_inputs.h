// Converts a job and its plan to the inputs from which model/ builds stage programs. Planner and
// worker share it, so that both build the same program. Pure.
#ifndef TROUPE_PLAN_VALIDATE_STAGE_INPUTS_H_
#define TROUPE_PLAN_VALIDATE_STAGE_INPUTS_H_

#include <vector>

#include "base/status.h"
#include "model/blocks/build_options.h"
#include "plan/schedules/schedule.h"
#include "plan/validate/decoded_job.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// The options from which the program of `rank` is built. INVALID_ARGUMENT for a rank that the plan
// does not have. REQUIRES: `plan` is a plan of `job`.
StatusOr<model::BuildOptions> MakeStageBuildOptions(const DecodedJob& job, const v1::Plan& plan,
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
