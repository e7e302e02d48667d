// The time until the next try of what has failed. Pure.
#ifndef TROUPE_COORDINATOR_KUBERNETES_BACKOFF_H_
#define TROUPE_COORDINATOR_KUBERNETES_BACKOFF_H_

#include <algorithm>

#include "base/clock.h"

namespace troupe {

class Backoff {
 public:
  // The first wait, which doubles with each further failure up to the last.
  Backoff(Duration first, Duration last) : first_(first), last_(last), next_(first) {}

  void Reset() {
    next_ = first_;
    until_ = MonotonicTime::min();
  }
  // Waits at least `least`, which may be longer than the last wait.
  void Fail(MonotonicTime now, Duration least = Duration::zero()) {
    until_ = now + std::max(next_, least);
    next_ = std::min(2 * next_, last_);
  }
  bool Waits(MonotonicTime now) const { return now < until_; }
  MonotonicTime until() const { return until_; }

 private:
  Duration first_;
  Duration last_;
  Duration next_;
  MonotonicTime until_ = MonotonicTime::min();
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_KUBERNETES_BACKOFF_H_
