// The hardware threads that this process may run on.
#ifndef TROUPE_WORKER_RANK_AFFINITY_H_
#define TROUPE_WORKER_RANK_AFFINITY_H_

#include <vector>

#include "base/status.h"

namespace troupe {

// The cores that this process may use, in order.
std::vector<int> AllowedCores();

// Binds every thread of this process to `cores`, and with them those that they will start. Threads
// that begin or end meanwhile are no error. REQUIRES: cores is not empty.
Status PinThisProcess(const std::vector<int>& cores);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_AFFINITY_H_
