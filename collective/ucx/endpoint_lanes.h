// Finds the link of a UCX endpoint in UCX's own description of it, because UCX has no call for it
// before 1.14. Pure.
#ifndef TROUPE_COLLECTIVE_UCX_ENDPOINT_LANES_H_
#define TROUPE_COLLECTIVE_UCX_ENDPOINT_LANES_H_

#include <string_view>

#include "collective/link.h"

namespace troupe {

// Parses the text that ucp_ep_print_info writes, with lines such as "#   lane[0]:  3:sysv/memory.0
// md[2]  -> md[2]/sysv/sysdev[255] am am_bw#0", and returns the lane that carries eager messages
// ("am"). kOther with the transport's name if the transport is unknown, and without a name if the
// text has no such line.
Link LinkOfLanes(std::string_view description);

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_UCX_ENDPOINT_LANES_H_
