#include "worker/rank/group_flight.h"

#include <string>

namespace troupe {

v1::GroupFlight GroupFlightOf(const CollectiveFlight& flight) {
  v1::GroupFlight message;
  message.set_group(flight.group);
  message.set_axis(flight.axis);
  message.mutable_ranks()->Assign(flight.ranks.begin(), flight.ranks.end());
  message.set_entered(flight.entered);
  if (flight.blocked_in == 0) return message;
  message.set_blocked_in(flight.blocked_in);
  message.set_operation(std::string(Name(flight.operation)));
  message.set_purpose(std::string(Name(flight.purpose)));
  message.set_bytes(flight.bytes);
  message.set_waited_seconds(ToSeconds(flight.waited));
  return message;
}

}  // namespace troupe
