// Estimates the time of a plan's step on devices of a profile: the schedule is simulated with the
// costs of the stages (plan/cost/stage_time.h). Pure.
#ifndef TROUPE_PLAN_COST_STEP_TIME_H_
#define TROUPE_PLAN_COST_STEP_TIME_H_

#include <vector>

#include "base/status.h"
#include "plan/cost/stage_memo.h"
#include "plan/cost/stage_time.h"
#include "plan/schedules/simulator.h"
#include "plan/validate/decoded_job.h"
#include "troupe/v1/device_profile.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

struct StepTime {
  double seconds = 0;
  // The next two are those of the rank with the largest value.
  double compute_seconds = 0;
  double communication_seconds = 0;  // not hidden by computation
  double bubble_ratio = 0;           // bubble of the schedule at these costs
  double mfu = 0;  // model FLOPs over seconds × ranks × the peak of the compute dtype
};

// INVALID_ARGUMENT where the profile has no rate for the job's compute dtype. REQUIRES: `plan` is a
// plan of `job`; `profile` was returned by ParseDeviceProfile.
StatusOr<StepTime> EstimateStepTime(const DecodedJob& job, const v1::Plan& plan,
                                    const v1::DeviceProfile& profile);

// The same, with stages that may have been built before. REQUIRES: `stages` is of the plan's job.
StatusOr<StepTime> EstimateStepTime(StageMemo& stages, const v1::Plan& plan);

// Returns the schedule that `plan` states. INVALID_ARGUMENT if an action of it is no action.
StatusOr<Schedule> ScheduleOf(const v1::Plan& plan);

// The functions below do the same by stage, for callers that compare many plans.

// The times of every pipe rank under `schedule`. REQUIRES: `plan` has mesh, chunks and buckets, and
// its chunks are on the ranks that the schedule gives them.
StatusOr<std::vector<StageTime>> TimesOfStages(StageMemo& stages, const v1::Plan& plan,
                                               const Schedule& schedule);

// The costs of F, I and W by chunk of the model; `stages` is indexed by pipe rank.
std::vector<ActionCosts> CostsByChunk(const v1::Plan& plan, const std::vector<StageTime>& stages);

// Returns the time of a step of the whole job; `stages` is indexed by pipe rank. REQUIRES: `plan`
// has mesh, chunks and FLOPs.
StatusOr<StepTime> StepTimeOf(const v1::Plan& plan, const Schedule& schedule, double peak,
                              const std::vector<StageTime>& stages);

}  // namespace troupe

#endif  // TROUPE_PLAN_COST_STEP_TIME_H_
