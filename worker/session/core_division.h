// Which cores of a host each rank on it may use: every rank its own where there is a core for each,
// in proportion to its threads; else shared so that each core has about as many threads. Pure.
#ifndef TROUPE_WORKER_SESSION_CORE_DIVISION_H_
#define TROUPE_WORKER_SESSION_CORE_DIVISION_H_

#include <vector>

#include "troupe/v1/rank.pb.h"

namespace troupe::session {

// A physical core: its hardware threads, ascending. Two threads of one core do not compute twice as
// fast, so a core is never divided.
using Core = std::vector<int>;

// A rank that is to be given cores, and the hardware threads from which its daemon may take them.
struct CoreDemand {
  v1::CoreClaim claim;
  std::vector<int> allowed;  // ascending
};

// The cores of each demand, in the order of `demands`; empty where no core of `host` is allowed.
// host: the cores of the host, those that are near each other next to each other.
//
// Demands of the same `allowed` divide these cores among themselves: jobs in the order in which
// they began, ranks in order. No more ranks than cores: each rank gets a run of cores of its own,
// one at least, and each further core goes to the rank with the most threads for a core. More ranks
// than cores: each gets the core with the fewest threads. Where masks overlap without being equal,
// as many ranks as possible get a core of their own, and the others share. All daemons of a host
// that know the same demands come to the same result.
std::vector<v1::CoreSet> DivideCores(const std::vector<CoreDemand>& demands,
                                     const std::vector<Core>& host);

}  // namespace troupe::session

#endif  // TROUPE_WORKER_SESSION_CORE_DIVISION_H_
