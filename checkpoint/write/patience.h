// Defines how long a host waits for files that another host has written: a network file system may
// show them late.
#ifndef TROUPE_CHECKPOINT_WRITE_PATIENCE_H_
#define TROUPE_CHECKPOINT_WRITE_PATIENCE_H_

#include <functional>

#include "base/clock.h"

namespace troupe {

struct Patience {
  const Clock* clock = nullptr;
  Duration limit{};
  // Waits for the duration. Returns false at once if the caller must give up. Never null.
  std::function<bool(Duration)> pause;
};

// Calls `done` until it returns true, the limit has passed or `pause` returns false. Returns the
// last result.
template <typename Done>
bool TryUntil(const Patience& patience, Done done) {
  constexpr Duration kPause = std::chrono::milliseconds(100);
  const MonotonicTime end = patience.clock->Now() + patience.limit;
  while (!done()) {
    if (patience.clock->Now() >= end || !patience.pause(kPause)) return false;
  }
  return true;
}

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_WRITE_PATIENCE_H_
