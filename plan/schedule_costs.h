// What F, I and W of each chunk cost under a schedule, for who chooses one: seconds on devices of a profile, as an
// estimate of the step has them, or model FLOPs where no profile is known. Pure.
#ifndef TROUPE_PLAN_SCHEDULE_COSTS_H_
#define TROUPE_PLAN_SCHEDULE_COSTS_H_

#include <string>

#include "base/status.h"
#include "model/config.h"
#include "plan/choose_schedule.h"
#include "troupe/v1/device_profile.pb.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// Both are INVALID_ARGUMENT where the model cannot be cut into the schedule's chunks.

// A product costs as much in I and in W as in F, attention's scores twice as much in I and nothing in W; the head makes its
// gradients in its forward; transfers are free.
StatusOr<ScheduleCosts> FlopsOfSchedule(const v1::JobSpec& spec, const model::ModelConfig& model,
                                        const Schedule& schedule);

// Of the chunks' own programs (plan/step_time.h): products, bytes, launches, transfers that are not hidden, and what is
// sent to neighbouring stages, which keeps the sender busy. INVALID_ARGUMENT as well where the profile has no rate for
// the job's compute dtype. REQUIRES: `plan` has mesh and buckets.
StatusOr<ScheduleCosts> SecondsOfSchedule(const v1::JobSpec& spec, const model::ModelConfig& model,
                                          const v1::Plan& plan, const Schedule& schedule,
                                          const v1::DeviceProfile& profile);

// "costs of F, I, W in seconds of device profile h100: first chunk …"; of FLOPs where `profile` is null.
std::string CostsLine(const ScheduleCosts& costs, const v1::DeviceProfile* profile);

}  // namespace troupe

#endif  // TROUPE_PLAN_SCHEDULE_COSTS_H_
