#include "coordinator/machine/device_demand.h"

namespace troupe {

int64_t DeviceDemand(const CoordinatorState& state) {
  int64_t devices = 0;
  for (const auto& [id, job] : state.jobs) {
    if (HasEnded(job)) continue;
    devices += job.smaller ? job.smaller->submitted_plan().ranks_size() : job.plan.ranks_size();
  }
  return devices;
}

}  // namespace troupe
