// How long a step of a plan takes on devices of a profile: each operation at the rate of products
// or of memory, whichever is slower, each collective at the rate of the links that its group spans,
// the schedule simulated with what comes of it. Nothing is counted as overlapped, as long as
// nothing overlaps on the backend. Pure.
#ifndef TROUPE_PLAN_STEP_TIME_H_
#define TROUPE_PLAN_STEP_TIME_H_

#include "base/status.h"
#include "troupe/v1/device_profile.pb.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

struct StepTime {
  double seconds = 0;
  // Of the rank that has most of it:
  double compute_seconds = 0;
  double communication_seconds = 0;  // that computation does not hide
  double bubble_ratio = 0;  // of the schedule at these costs
  double mfu = 0;           // model FLOPs over seconds × ranks × the peak of the compute dtype
};

// INVALID_ARGUMENT where the profile has no rate for the job's compute dtype. REQUIRES: `plan` is
// one of `spec`, whose defaults are filled in; `profile` is one that ParseDeviceProfile returns.
StatusOr<StepTime> EstimateStepTime(const v1::JobSpec& spec, const v1::Plan& plan,
                                    const v1::DeviceProfile& profile);

}  // namespace troupe

#endif  // TROUPE_PLAN_STEP_TIME_H_
