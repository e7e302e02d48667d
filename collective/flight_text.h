// Which collectives a rank stands in, as text for its failure.
#ifndef TROUPE_COLLECTIVE_FLIGHT_TEXT_H_
#define TROUPE_COLLECTIVE_FLIGHT_TEXT_H_

#include <string>
#include <vector>

#include "collective/statistics.h"

namespace troupe {

// "all_gather of axis data_shard, purpose unshard, group data_shard/0, 64 bytes, the group's
// operation 12, for 3.2 s", one for each group with an operation that the rank stands in, separated
// by "; ". Empty where there is none.
std::string DescribeInFlight(const std::vector<CollectiveFlight>& flights);

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_FLIGHT_TEXT_H_
