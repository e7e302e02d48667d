// The costs of F, I and W of each chunk under a schedule, by which a schedule is chosen: seconds on
// the devices of a profile, as in the estimate of a step, or model FLOPs without a profile. Pure.
#ifndef TROUPE_PLAN_COST_SCHEDULE_COSTS_H_
#define TROUPE_PLAN_COST_SCHEDULE_COSTS_H_

#include <string>

#include "base/status.h"
#include "plan/cost/choose_schedule.h"
#include "plan/cost/stage_memo.h"
#include "plan/validate/decoded_job.h"
#include "troupe/v1/device_profile.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// Both functions return INVALID_ARGUMENT where the model cannot be cut into the schedule's chunks.

// Costs in model FLOPs. A matmul costs as much in I and in W as in F; attention scores cost twice
// as much in I and nothing in W; the head computes its gradients in its forward; transfers are
// free.
StatusOr<ScheduleCosts> FlopsOfSchedule(const DecodedJob& job, const Schedule& schedule);

// Costs in seconds, from the programs of the chunks (plan/cost/step_time.h): matmuls, bytes,
// launches, transfers that are not hidden, and the sends to neighbouring stages, which keep the
// sender busy. INVALID_ARGUMENT also where the profile has no rate for the job's compute dtype.
// REQUIRES: `plan` has mesh and buckets, and is of the job of `stages`.
StatusOr<ScheduleCosts> SecondsOfSchedule(const v1::Plan& plan, const Schedule& schedule,
                                          StageMemo& stages);

// A line like "costs of F, I, W in seconds of device profile h100: first chunk …"; costs are in
// FLOPs where `profile` is null.
std::string CostsLine(const ScheduleCosts& costs, const v1::DeviceProfile* profile);

}  // namespace troupe

#endif  // TROUPE_PLAN_COST_SCHEDULE_COSTS_H_
