// Whether a plan's ranks fit into the memory of the devices that it is made for. Pure.
#ifndef TROUPE_PLAN_COST_MEMORY_FIT_H_
#define TROUPE_PLAN_COST_MEMORY_FIT_H_

#include "base/status.h"
#include "plan/validate/decoded_job.h"
#include "troupe/v1/device_profile.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// INVALID_ARGUMENT, with the figures of each stage whose ranks need more than the profile's
// memory_bytes, for devices with memory of their own. REQUIRES: `plan` is a plan of `job`.
Status CheckMemory(const DecodedJob& job, const v1::Plan& plan, const v1::DeviceProfile& profile);

}  // namespace troupe

#endif  // TROUPE_PLAN_COST_MEMORY_FIT_H_
