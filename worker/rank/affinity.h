// The hardware threads on which this process may run.
#ifndef TROUPE_WORKER_RANK_AFFINITY_H_
#define TROUPE_WORKER_RANK_AFFINITY_H_

#include <vector>

#include "base/status.h"

namespace troupe {

// Returns the hardware threads that this process may use, in ascending order.
std::vector<int> AllowedCores();

// Binds every thread of this process to `cores`, and thereby the threads that they start later.
// Threads that begin or end meanwhile cause no error. REQUIRES: `cores` is not empty.
Status PinThisProcess(const std::vector<int>& cores);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_AFFINITY_H_
