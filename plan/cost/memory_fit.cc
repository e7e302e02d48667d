#include "plan/cost/memory_fit.h"

#include "plan/device/device_traits.h"
#include "plan/job/violation.h"

namespace troupe {

Status CheckMemory(const v1::JobSpec& spec, const v1::Plan& plan,
                   const v1::DeviceProfile& profile) {
  Violations violations;
  if (DeviceTraitsOf(spec, plan).memory == nullptr) return violations.ToStatus();
  for (int stage = 0; stage < plan.memory_size(); ++stage) {
    const int64_t needed = plan.memory(stage).total_bytes();
    if (needed <= profile.memory_bytes()) continue;
    violations.Add("parallelism",
                   "gives a rank of stage {} {} bytes, but a device of profile {} has {}", stage,
                   needed, profile.name(), profile.memory_bytes());
  }
  return violations.ToStatus();
}

}  // namespace troupe
