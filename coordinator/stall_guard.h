// Notices that this process itself stood still (stopped, its machine paused, its disk stuck): the
// silence of others then says nothing, for what they sent waits unread. No limit of theirs is
// looked at until they have had the reconnect grace to be heard again.
#ifndef TROUPE_COORDINATOR_STALL_GUARD_H_
#define TROUPE_COORDINATOR_STALL_GUARD_H_

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

  // To be called all the time: a gap between two calls that is longer than any wait of the caller
  // is a stall. Returns whether it was one.
  bool Look(MonotonicTime now) {
    const bool stalled = now - last_look_ > longest_gap_;
    last_look_ = now;
    if (stalled) ticks_from_ = now + grace_;
    return stalled;
  }

  // No limit is to be looked at before then.
  MonotonicTime ticks_from() const { return ticks_from_; }

 private:
  const Duration longest_gap_;
  const Duration grace_;
  MonotonicTime last_look_;
  MonotonicTime ticks_from_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_STALL_GUARD_H_
