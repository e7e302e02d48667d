// By which ways a rank's messages reach the other ranks, for its job's receipt, and where that is not
// the way that is meant: shared memory within a host, and between hosts RDMA where the host has a
// device for it. Pure but HasRdmaDevices.
#ifndef TROUPE_WORKER_RANK_RANK_LINKS_H_
#define TROUPE_WORKER_RANK_RANK_LINKS_H_

#include <map>
#include <string>
#include <vector>

#include "collective/link.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// The links, each once, sorted.
std::vector<std::string> LinkTexts(const std::map<int, Link>& links);

// A line "transport to rank 3: …" for each rank that is reached by another way than meant. `links`:
// by rank of `plan`, of which `rank` is this one. REQUIRES: all are ranks of the plan.
std::vector<std::string> LinkFallbacks(const std::map<int, Link>& links, const v1::Plan& plan, int rank,
                                       bool has_rdma);

// Whether this host has an RDMA device, as the kernel lists them.
bool HasRdmaDevices();

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_RANK_LINKS_H_
