// How long a job that runs may go without a step before it counts as hung. Pure.
#ifndef TROUPE_COORDINATOR_HANG_LIMIT_H_
#define TROUPE_COORDINATOR_HANG_LIMIT_H_

#include "base/clock.h"
#include "base/time_limits.h"

namespace troupe {

// From so many steps of a group epoch on its pace is known.
inline constexpr int kPaceSteps = 5;
// A step may take so many times as long as the slowest one.
inline constexpr double kHangSteps = 5;

struct HangInputs {
  double stated_seconds = 0;  // fault_tolerance.hang_seconds
  int steps_seen = 0;         // in this group epoch
  // Of the recent steps of this epoch but its first, which pays for warming up.
  double slowest_step_seconds = 0;
  // Of a step on the slowest device worth training on; see plan/slowest_step.h.
  double unmeasured_step_seconds = 0;
  // The validation after the step that is awaited, in steps' worth of samples; 0: there is none.
  double validation_steps = 0;
  // What a save may add to that step.
  double save_seconds = 0;
};

// Pace known: kHangSteps times the slowest recent step, at least twice the detection time (lease),
// with room for validation and save; or the stated limit where that is longer than its default,
// which is how a job that may pause says so. Before: the stated limit, at least the startup
// allowance, and room for kHangSteps steps of the slowest device. Never above a day.
Duration HangLimit(const HangInputs& inputs, const TimeLimits& limits);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_HANG_LIMIT_H_
