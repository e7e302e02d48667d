// Detects that this process itself was stalled (stopped, its machine paused, its disk blocked). The
// silence of others then means nothing, because their messages wait unread. None of their time
// limits is checked until they have had the reconnect grace to be heard again.
#ifndef TROUPE_COORDINATOR_ENGINE_STALL_GUARD_H_
#define TROUPE_COORDINATOR_ENGINE_STALL_GUARD_H_

#include <algorithm>

#include "base/clock.h"
#include "base/time_limits.h"

namespace troupe {

class StallGuard {
 public:
  StallGuard(const TimeLimits& limits, MonotonicTime now)
      : longest_gap_(std::max<Duration>(limits.heartbeat, std::chrono::seconds(1))),
        grace_(limits.reconnect_grace),
        last_look_(now),
        ticks_from_(now) {}

  // Call this continually: a gap between two calls that is longer than any wait of the caller is a
  // stall. Returns whether there was one.
  bool Look(MonotonicTime now) {
    const bool stalled = now - last_look_ > longest_gap_;
    last_look_ = now;
    if (stalled) ticks_from_ = now + grace_;
    return stalled;
  }

  // No time limit is to be checked before then.
  MonotonicTime ticks_from() const { return ticks_from_; }

 private:
  const Duration longest_gap_;
  const Duration grace_;
  MonotonicTime last_look_;
  MonotonicTime ticks_from_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_ENGINE_STALL_GUARD_H_
