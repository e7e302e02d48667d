// Divides the cores of a host among its ranks. If there is a core for each rank, every rank gets
// cores of its own, in proportion to its threads; else cores are shared so that each has about as
// many threads. Pure.
#ifndef TROUPE_WORKER_SESSION_CORE_DIVISION_H_
#define TROUPE_WORKER_SESSION_CORE_DIVISION_H_

#include <vector>

#include "troupe/v1/rank.pb.h"

namespace troupe::session {

// A physical core: its hardware threads, ascending. A core is never divided, because two threads of
// one core do not compute twice as fast.
using Core = std::vector<int>;

// A rank that needs cores, and the hardware threads that its daemon may assign.
struct CoreDemand {
  v1::CoreClaim claim;
  std::vector<int> allowed;  // ascending
};

// Returns the cores of each demand, in the order of `demands`; empty if no core of `host` is
// allowed. `host` has the host's cores, adjacent cores next to each other.
//
// Demands with the same `allowed` divide these cores among themselves: jobs in the order in which
// they began, ranks in order. If there are no more ranks than cores, each rank gets a run of at
// least one core of its own, and each further core goes to the rank with the most threads per core.
// If there are more ranks than cores, each rank gets the core with the fewest threads. If masks
// overlap without being equal, as many ranks as possible get a core of their own, and the others
// share. All daemons of a host that know the same demands compute the same result.
std::vector<v1::CoreSet> DivideCores(const std::vector<CoreDemand>& demands,
                                     const std::vector<Core>& host);

}  // namespace troupe::session

#endif  // TROUPE_WORKER_SESSION_CORE_DIVISION_H_
