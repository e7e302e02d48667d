// A clock for tests of what expires.
#ifndef TROUPE_COORDINATOR_TEST_CLOCK_H_
#define TROUPE_COORDINATOR_TEST_CLOCK_H_

#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace troupe {

// The system's clock, whose wall time a test moves.
class ShiftedClock final : public Clock {
 public:
  MonotonicTime Now() const override { return SystemClock().Now(); }
  int64_t WallNanoseconds() const override {
    return SystemClock().WallNanoseconds() + shift_seconds * 1'000'000'000;
  }
  std::atomic<int64_t> shift_seconds = 0;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_TEST_CLOCK_H_
