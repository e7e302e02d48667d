// A plan before its ranks are placed on devices. Pure.
#ifndef TROUPE_PLAN_UNPLACED_PLAN_H_
#define TROUPE_PLAN_UNPLACED_PLAN_H_

#include "base/status.h"
#include "plan/validate/decoded_job.h"
#include "troupe/v1/device_profile.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// MakeUnplacedPlan of plan/make_plan.h, for a decoded job. Null `profile`: none. REQUIRES:
// ValidateJobSpec accepts the job.
StatusOr<v1::Plan> UnplacedPlanOf(const DecodedJob& job, const v1::DeviceProfile* profile);

}  // namespace troupe

#endif  // TROUPE_PLAN_UNPLACED_PLAN_H_
