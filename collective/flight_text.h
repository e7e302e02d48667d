// Describes the collectives in which a rank is blocked, for its failure report.
#ifndef TROUPE_COLLECTIVE_FLIGHT_TEXT_H_
#define TROUPE_COLLECTIVE_FLIGHT_TEXT_H_

#include <string>
#include <vector>

#include "collective/statistics.h"

namespace troupe {

// Returns "all_gather of axis data_shard, purpose unshard, group data_shard/0, 64 bytes, operation
// 12 of the group, for 3.2 s" for each group in whose operation the rank is blocked, separated by
// "; ". Empty if there is none.
std::string DescribeInFlight(const std::vector<CollectiveFlight>& flights);

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_FLIGHT_TEXT_H_
