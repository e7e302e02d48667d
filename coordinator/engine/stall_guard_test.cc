#include "coordinator/engine/stall_guard.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(StallGuard, HoldsNothingBackWhileItIsLookedAtOften) {
  const TimeLimits limits = MakeTimeLimits(3);
  MonotonicTime now{seconds(100)};
  StallGuard guard(limits, now);
  for (int i = 0; i < 100; ++i) {
    now += milliseconds(900);
    EXPECT_FALSE(guard.Look(now));
    EXPECT_LE(guard.ticks_from(), now);
  }
}

TEST(StallGuard, GivesEverybodyTheGraceAfterAStallAndAgainAfterAnother) {
  const TimeLimits limits = MakeTimeLimits(3);
  MonotonicTime now{seconds(100)};
  StallGuard guard(limits, now);
  now += seconds(10);
  EXPECT_TRUE(guard.Look(now));
  EXPECT_EQ(guard.ticks_from(), now + limits.reconnect_grace);
  now += milliseconds(500);
  EXPECT_FALSE(guard.Look(now));
  EXPECT_EQ(guard.ticks_from(), now - milliseconds(500) + limits.reconnect_grace);
  now += seconds(2);
  EXPECT_TRUE(guard.Look(now));
  EXPECT_EQ(guard.ticks_from(), now + limits.reconnect_grace);
}

}  // namespace
}  // namespace troupe
