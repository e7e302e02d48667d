#include "collective/flight_text.h"

#include <fmt/format.h>

#include "base/clock.h"

namespace troupe {

std::string DescribeInFlight(const std::vector<CollectiveFlight>& flights) {
  std::string text;
  for (const CollectiveFlight& flight : flights) {
    if (flight.blocked_in == 0) continue;
    text += fmt::format(
        "{}{} of axis {}, purpose {}, group {}, {} bytes, operation {} of the group, for {:.1f} s",
        text.empty() ? "" : "; ", Name(flight.operation), flight.axis, Name(flight.purpose),
        flight.group, flight.bytes, flight.blocked_in, ToSeconds(flight.waited));
  }
  return text;
}

}  // namespace troupe
