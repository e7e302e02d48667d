#include "base/security/record_limit.h"

namespace troupe {

std::optional<int64_t> RecordLimit::Admit(const std::string& file, int line, MonotonicTime now) {
  Place& place = places_[{file, line}];
  if (now - place.window_begin >= kWindow) {
    place.window_begin = now;
    place.admitted = 0;
  }
  if (place.admitted == kMostInWindow) {
    ++place.dropped;
    return std::nullopt;
  }
  ++place.admitted;
  return std::exchange(place.dropped, 0);
}

}  // namespace troupe
