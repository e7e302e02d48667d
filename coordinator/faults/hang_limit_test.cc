#include "coordinator/faults/hang_limit.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(HangLimit, FollowsThePaceOnceItIsKnownAndTheDefaultsUntilThen) {
  const TimeLimits limits = MakeTimeLimits(3);
  struct Row {
    const char* what;
    HangInputs inputs;
    double seconds;
  };
  const Row table[] = {
      {"nothing is known", {.stated_seconds = 60}, 60},
      {"four steps are too few",
       {.stated_seconds = 60, .steps_seen = 4, .slowest_step_seconds = 0.1},
       60},
      {"a large model on a slow device",
       {.stated_seconds = 60, .unmeasured_step_seconds = 100},
       560},
      {"a shorter limit than the default", {.stated_seconds = 5}, 60},
      {"a longer one", {.stated_seconds = 200}, 200},
      {"short steps", {.stated_seconds = 60, .steps_seen = 5, .slowest_step_seconds = 0.1}, 6},
      {"long steps", {.stated_seconds = 60, .steps_seen = 5, .slowest_step_seconds = 20}, 100},
      {"a shorter limit, short steps",
       {.stated_seconds = 20, .steps_seen = 9, .slowest_step_seconds = 0.1},
       6},
      {"a longer limit, short steps",
       {.stated_seconds = 200, .steps_seen = 9, .slowest_step_seconds = 0.1},
       200},
      {"validation",
       {.stated_seconds = 60, .steps_seen = 9, .slowest_step_seconds = 2, .validation_steps = 3},
       40},
      {"a save", {.steps_seen = 9, .slowest_step_seconds = 0.1, .save_seconds = 7}, 13},
      {"a day at the most", {.steps_seen = 9, .slowest_step_seconds = 1e6}, 86400},
  };
  for (const Row& row : table)
    EXPECT_DOUBLE_EQ(ToSeconds(HangLimit(row.inputs, limits)), row.seconds) << row.what;
}

TEST(HangLimit, FollowsTheDetectionTime) {
  const HangInputs inputs = {.steps_seen = 5, .slowest_step_seconds = 0.01};
  for (const double detection : {0.5, 3.0, 60.0}) {
    EXPECT_DOUBLE_EQ(ToSeconds(HangLimit(inputs, MakeTimeLimits(detection))), 2 * detection);
  }
}

}  // namespace
}  // namespace troupe
