// The product's clocks: a monotonic clock for limits and leases, and a wall clock for records only.
// Decisions never read the wall clock. The simulator passes its own Clock.
#ifndef TROUPE_BASE_CLOCK_H_
#define TROUPE_BASE_CLOCK_H_

#include <chrono>
#include <cstdint>
#include <string>

namespace troupe {

using Duration = std::chrono::nanoseconds;
// Time since an arbitrary start of this process's monotonic clock.
using MonotonicTime = std::chrono::time_point<std::chrono::steady_clock, Duration>;

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual MonotonicTime Now() const = 0;
  // Nanoseconds since the Unix epoch; may jump; for records only.
  virtual int64_t WallNanoseconds() const = 0;
};

class SystemClock final : public Clock {
 public:
  MonotonicTime Now() const override;
  int64_t WallNanoseconds() const override;
};

// Seconds since the Unix epoch.
inline int64_t WallSeconds(const Clock& clock) { return clock.WallNanoseconds() / 1'000'000'000; }

// Returns a text such as "2031-05-04T12:00:00Z" (RFC 3339, to the second).
std::string UtcText(int64_t unix_seconds);

inline double ToSeconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}
inline Duration FromSeconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

}  // namespace troupe

#endif  // TROUPE_BASE_CLOCK_H_
