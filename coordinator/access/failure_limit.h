// Limits how many attempts may fail in a time, such as those to guess a secret. Pure; not
// thread-safe.
#ifndef TROUPE_COORDINATOR_ACCESS_FAILURE_LIMIT_H_
#define TROUPE_COORDINATOR_ACCESS_FAILURE_LIMIT_H_

#include <cstddef>
#include <deque>

#include "base/clock.h"

namespace troupe {

class FailureLimit {
 public:
  // At most `most` failures in any `window`.
  FailureLimit(size_t most, Duration window) : most_(most), window_(window) {}

  // Counts a failure at `now`, unless there were too many: returns false then. REQUIRES: `now` does
  // not decrease.
  bool Admit(MonotonicTime now);

 private:
  const size_t most_;
  const Duration window_;
  std::deque<MonotonicTime> failures_;  // those within the window, the oldest first
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_ACCESS_FAILURE_LIMIT_H_
