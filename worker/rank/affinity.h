// Which cores a rank's threads run on: the host's cores shared fairly among the ranks that a job
// has there.
#ifndef TROUPE_WORKER_RANK_AFFINITY_H_
#define TROUPE_WORKER_RANK_AFFINITY_H_

#include <vector>

#include "base/status.h"

namespace troupe {

// Cores of `allowed` for the rank that is `index` of `ranks` on the host, with `threads` threads
// each. Where the job fills the host (ranks · threads >= cores) each rank gets cores of its own,
// or, where there are not enough, shares them in turn; else all are left to it, because other jobs'
// ranks are not known. Pure. REQUIRES: allowed is not empty, 0 <= index < ranks, threads >= 1.
std::vector<int> CoresOfRank(const std::vector<int>& allowed, int ranks, int index, int threads);

// The cores that this process may use, in order.
std::vector<int> AllowedCores();

// Binds the calling thread, and the threads that it will start, to `cores`.
Status PinThisThread(const std::vector<int>& cores);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_AFFINITY_H_
