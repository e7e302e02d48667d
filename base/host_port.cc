#include "base/host_port.h"

#include <charconv>

namespace troupe {

Status CheckHostPort(std::string_view flag, std::string_view text, int least_port) {
  const size_t colon = text.rfind(':');
  if (colon != std::string_view::npos) {
    const char* const last = text.data() + text.size();
    int port = -1;
    const auto [end, error] = std::from_chars(text.data() + colon + 1, last, port);
    if (error == std::errc() && end == last && port >= least_port && port <= 65535)
      return OkStatus();
  }
  return InvalidArgument("{} {} is not HOST:PORT, with a port from {} to 65535", flag, text,
                         least_port);
}

}  // namespace troupe
