#include "base/clock.h"

#include <ctime>

namespace troupe {

MonotonicTime SystemClock::Now() const { return std::chrono::steady_clock::now(); }

int64_t SystemClock::WallNanoseconds() const {
  return std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string UtcText(int64_t unix_seconds) {
  const std::time_t time = unix_seconds;
  std::tm broken_down{};
  gmtime_r(&time, &broken_down);
  char text[64];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &broken_down)};
}

}  // namespace troupe
