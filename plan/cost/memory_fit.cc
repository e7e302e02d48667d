#include "plan/cost/memory_fit.h"

#include "base/text/scaled.h"
#include "plan/job/violation.h"

namespace troupe {

Status CheckMemory(const DecodedJob& job, const v1::Plan& plan, const v1::DeviceProfile& profile) {
  Violations violations;
  if (job.DevicesOf(plan).memory == nullptr) return violations.ToStatus();
  for (int stage = 0; stage < plan.memory_size(); ++stage) {
    const int64_t needed = plan.memory(stage).total_bytes();
    if (needed <= profile.memory_bytes()) continue;
    const auto size = [](int64_t bytes) { return Scaled(static_cast<double>(bytes), "B"); };
    violations.Add("parallelism",
                   "gives a rank of stage {} {}, but a device of profile {} has {}: {} are missing",
                   stage, size(needed), profile.name(), size(profile.memory_bytes()),
                   size(needed - profile.memory_bytes()));
  }
  return violations.ToStatus();
}

}  // namespace troupe
