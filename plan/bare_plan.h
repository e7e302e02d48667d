// The part of a job's plan that program building needs: mesh, schedule, chunks and buckets. Pure.
#ifndef TROUPE_PLAN_BARE_PLAN_H_
#define TROUPE_PLAN_BARE_PLAN_H_

#include <vector>

#include "base/status.h"
#include "plan/cost/choose_schedule.h"
#include "plan/cost/stage_memo.h"
#include "plan/schedules/schedule.h"
#include "plan/validate/decoded_job.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// The inputs of program building, and the schedule that runs the programs.
struct BarePlan {
  v1::Plan plan;  // with mesh, lag, chunks, buckets, interleaves_pairs and profile only
  Schedule schedule;
};

// Makes the part of the plan that program building needs. Choices that are left to the planner
// (pipeline_parallel_schedule: auto) are made by the times of `stages`, which is of the job, or by
// FLOPs where it is null; a schedule is one of `schedules`. REQUIRES: ValidateJobSpec accepts the
// job. INVALID_ARGUMENT where the schedule or the cut is impossible.
StatusOr<BarePlan> MakeBarePlan(const DecodedJob& job, StageMemo* stages,
                                const std::vector<ScheduleOption>& schedules);

}  // namespace troupe

#endif  // TROUPE_PLAN_BARE_PLAN_H_
