// Memory and time estimates of a layout for callers that compare many layouts. The figures are the
// planner's own, but no plan is built, and equal stages are built once. Pure.
#ifndef TROUPE_PLAN_SEARCH_LAYOUT_ESTIMATE_H_
#define TROUPE_PLAN_SEARCH_LAYOUT_ESTIMATE_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/status.h"
#include "plan/cost/choose_schedule.h"
#include "plan/cost/step_time.h"
#include "plan/validate/decoded_job.h"
#include "troupe/v1/device_profile.pb.h"

namespace troupe {

struct LayoutEstimate {
  // Bytes on the rank with the largest need among the evaluated ranks (all of them if `time` is
  // set).
  int64_t memory_bytes = 0;
  double seconds_at_least = 0;  // lower bound on the step time, from the evaluated ranks
  // None where it does not fit in the profile's memory_bytes, or is too slow.
  std::optional<StepTime> time;
};

// Stops as soon as it is certain that memory does not suffice or that a step takes at least
// `too_slow_seconds`. INVALID_ARGUMENT where the layout cannot be planned or the profile has no
// rate for the job's compute dtype. Where the planner chooses the schedule, it is one of
// `schedules`. REQUIRES: ValidateJobSpec accepts the job.
StatusOr<LayoutEstimate> EstimateLayout(
    const DecodedJob& job, const v1::DeviceProfile& profile,
    double too_slow_seconds = std::numeric_limits<double>::infinity(),
    const std::vector<ScheduleOption>& schedules = EverySchedule());

}  // namespace troupe

#endif  // TROUPE_PLAN_SEARCH_LAYOUT_ESTIMATE_H_
