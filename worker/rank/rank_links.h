// Reports, for the job's receipt, by which transport a rank's messages reach the other ranks, and
// where that is not the intended one: shared memory within a host, and RDMA between hosts if the
// host has an RDMA device. Pure except HasRdmaDevices.
#ifndef TROUPE_WORKER_RANK_RANK_LINKS_H_
#define TROUPE_WORKER_RANK_RANK_LINKS_H_

#include <map>
#include <string>
#include <vector>

#include "collective/link.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// Returns the distinct links, sorted.
std::vector<std::string> LinkTexts(const std::map<int, Link>& links);

// Returns a line "transport to rank 3: …" for each rank that is not reached by the intended
// transport. `links`, by rank of `plan`, are those of rank `rank`. REQUIRES: all are ranks of the
// plan.
std::vector<std::string> LinkFallbacks(const std::map<int, Link>& links, const v1::Plan& plan,
                                       int rank, bool has_rdma);

// Whether this host has an RDMA device, according to the kernel's list.
bool HasRdmaDevices();

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_RANK_LINKS_H_
