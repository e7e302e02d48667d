// What a layout needs and takes, for who compares many: the planner's own figures, without the plan. Stages of one kind
// are built once. Pure.
#ifndef TROUPE_PLAN_LAYOUT_ESTIMATE_H_
#define TROUPE_PLAN_LAYOUT_ESTIMATE_H_

#include <cstdint>
#include <limits>
#include <optional>

#include "base/status.h"
#include "plan/step_time.h"
#include "troupe/v1/device_profile.pb.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

struct LayoutEstimate {
  int64_t memory_bytes = 0;      // of the rank that needs most of those that were looked at: all if there is a time
  double seconds_at_least = 0;   // what those ranks need for a step
  std::optional<StepTime> time;  // none where the memory of the profile's device does not suffice, or it is too slow
};

// Ends as soon as it is certain that memory does not suffice or that a step takes `too_slow_seconds`. INVALID_ARGUMENT
// where the layout cannot be planned or the profile has no rate for the job's compute dtype. REQUIRES: `spec` is valid,
// its defaults are filled in.
StatusOr<LayoutEstimate> EstimateLayout(
    const v1::JobSpec& spec, const v1::DeviceProfile& profile,
    double too_slow_seconds = std::numeric_limits<double>::infinity());

}  // namespace troupe

#endif  // TROUPE_PLAN_LAYOUT_ESTIMATE_H_
