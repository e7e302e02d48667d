#include "base/clock.h"

namespace troupe {

MonotonicTime SystemClock::Now() const { return std::chrono::steady_clock::now(); }

int64_t SystemClock::WallNanoseconds() const {
  return std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace troupe
