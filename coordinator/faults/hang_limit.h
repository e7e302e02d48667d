// The time that a running job may go without a step before it counts as hung. Pure.
#ifndef TROUPE_COORDINATOR_FAULTS_HANG_LIMIT_H_
#define TROUPE_COORDINATOR_FAULTS_HANG_LIMIT_H_

#include "base/clock.h"
#include "base/time_limits.h"

namespace troupe {

// Number of steps in a group epoch after which its pace is known.
inline constexpr int kPaceSteps = 5;
// Factor by which a step may exceed the slowest recent one.
inline constexpr double kHangSteps = 5;

struct HangInputs {
  double stated_seconds = 0;  // fault_tolerance.hang_seconds
  int steps_seen = 0;         // in this group epoch
  // Slowest recent step of this epoch, excluding its first, which includes warm-up.
  double slowest_step_seconds = 0;
  // Step time on the slowest device worth training on; see plan/cost/slowest_step.h.
  double unmeasured_step_seconds = 0;
  // Samples of the validation after the awaited step, in units of a step's samples; 0: no
  // validation.
  double validation_steps = 0;
  // Time that a save may add to the awaited step.
  double save_seconds = 0;
};

// With a known pace, returns kHangSteps times the slowest recent step, at least twice the detection
// time (lease), plus room for the validation; or the stated limit if that is longer and above its
// default, which is how a user allows a job to pause. Before the pace is known, returns the larger
// of the stated limit and the startup allowance, plus kHangSteps steps of the slowest device. Both
// include save_seconds and never exceed one day.
Duration HangLimit(const HangInputs& inputs, const TimeLimits& limits);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_FAULTS_HANG_LIMIT_H_
