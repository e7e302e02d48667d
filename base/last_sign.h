// Records when a loop or a server last showed that it works. Thread-safe.
#ifndef TROUPE_BASE_LAST_SIGN_H_
#define TROUPE_BASE_LAST_SIGN_H_

#include <atomic>
#include <chrono>

namespace troupe {

class LastSign {
 public:
  using Clock = std::chrono::steady_clock;

  // Records that it works now.
  void Touch() { at_.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed); }

  // Returns the time since the last Touch, or since construction.
  Clock::duration Age() const {
    return Clock::now().time_since_epoch() - Clock::duration(at_.load(std::memory_order_relaxed));
  }

 private:
  std::atomic<Clock::rep> at_{Clock::now().time_since_epoch().count()};
};

}  // namespace troupe

#endif  // TROUPE_BASE_LAST_SIGN_H_
