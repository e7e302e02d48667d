// Memory and traffic of one pipe rank of a plan, read off its stage program and memory plan: the program that runs is
// the one that is counted. Pure.
#ifndef TROUPE_PLAN_STAGE_COST_H_
#define TROUPE_PLAN_STAGE_COST_H_

#include <vector>

#include "base/status.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

struct StageCost {
  v1::RankMemory memory;
  std::vector<v1::AxisTraffic> traffic;  // sent by one rank in a step; by axis and purpose
  double recomputed_flops = 0;           // of one rank in a step, in the convention of model FLOPs
};

// Of the ranks at `pipe_rank` (built for the first of them, whose slices are the largest). INVALID_ARGUMENT where the
// program cannot be built. REQUIRES: `plan` has mesh, chunks, schedule and bucket.
StatusOr<StageCost> CostOfStage(const v1::JobSpec& spec, const v1::Plan& plan, int pipe_rank);

}  // namespace troupe

#endif  // TROUPE_PLAN_STAGE_COST_H_
