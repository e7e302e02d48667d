#include "coordinator/faults/hang_limit.h"

#include <algorithm>

#include "plan/cost/slowest_step.h"

namespace troupe {

Duration HangLimit(const HangInputs& inputs, const TimeLimits& limits) {
  constexpr double kLongestSeconds = 86400;
  double seconds = 0;
  if (inputs.steps_seen < kPaceSteps) {
    seconds = std::max(inputs.stated_seconds, ToSeconds(limits.startup_allowance)) +
              kHangSteps * inputs.unmeasured_step_seconds;
  } else {
    const double step = kHangSteps * inputs.slowest_step_seconds;
    seconds = std::max(step, 2 * ToSeconds(limits.lease)) + step * inputs.validation_steps;
    if (inputs.stated_seconds > DefaultHangSeconds())
      seconds = std::max(seconds, inputs.stated_seconds);
  }
  return FromSeconds(std::min(seconds + inputs.save_seconds, kLongestSeconds));
}

}  // namespace troupe
