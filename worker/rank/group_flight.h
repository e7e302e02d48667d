// The message about a group's collective in flight.
#ifndef TROUPE_WORKER_RANK_GROUP_FLIGHT_H_
#define TROUPE_WORKER_RANK_GROUP_FLIGHT_H_

#include "collective/network.h"
#include "troupe/v1/worker.pb.h"

namespace troupe {

// Pure.
v1::GroupFlight GroupFlightOf(const CollectiveFlight& flight);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_GROUP_FLIGHT_H_
