// Addresses of the form HOST:PORT.
#ifndef TROUPE_BASE_HOST_PORT_H_
#define TROUPE_BASE_HOST_PORT_H_

#include <string_view>

#include "base/status.h"

namespace troupe {

// INVALID_ARGUMENT, with `flag` and `text`, unless `text` is HOST:PORT with a port from
// `least_port` to 65535. The host may be empty, a name, an IPv4 address or [an IPv6 address].
Status CheckHostPort(std::string_view flag, std::string_view text, int least_port);

}  // namespace troupe

#endif  // TROUPE_BASE_HOST_PORT_H_
