// Memory and traffic of one pipe rank of a plan. Pure.
#ifndef TROUPE_PLAN_STAGE_COST_H_
#define TROUPE_PLAN_STAGE_COST_H_

#include <vector>

#include "base/status.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

struct StageCost {
  v1::RankMemory memory;
  std::vector<v1::AxisTraffic> traffic;  // sent by one rank in a step
};

// Of the ranks at `pipe_rank` (at tensor coordinate 0, whose slices are the largest). REQUIRES: `plan` has mesh,
// chunks and schedule.
StatusOr<StageCost> CostOfStage(const v1::JobSpec& spec, const v1::Plan& plan, int pipe_rank);

}  // namespace troupe

#endif  // TROUPE_PLAN_STAGE_COST_H_
