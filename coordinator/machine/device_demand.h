// The number of devices that the jobs of the cluster want. Pure.
#ifndef TROUPE_COORDINATOR_MACHINE_DEVICE_DEMAND_H_
#define TROUPE_COORDINATOR_MACHINE_DEVICE_DEMAND_H_

#include <cstdint>

#include "coordinator/machine/coordinator_state.h"

namespace troupe {

// Returns the number of ranks of all jobs that have not ended, each in the layout that it was
// submitted with: a job that runs with fewer ranks grows back.
int64_t DeviceDemand(const CoordinatorState& state);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_MACHINE_DEVICE_DEMAND_H_
