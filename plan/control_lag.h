// control_lag_steps of a plan: how many steps later a rank may learn a collective decision that was
// made after a step. The plan fixes it, so that all ranks act after the same step. Pure.
#ifndef TROUPE_PLAN_CONTROL_LAG_H_
#define TROUPE_PLAN_CONTROL_LAG_H_

#include <cstdint>
#include <string_view>

namespace troupe {

// The limit is 1: with a larger lag, a step could be submitted under a ticket that was not known
// when the control word that decides what is due after the step was formed.
inline constexpr int32_t kControlLagStepsMax = 1;

// The lag for devices of this kind (the job's `devices`). A GPU must have its next step enqueued
// when it completes one, so that step is submitted before the result of the previous one is read.
// Where the host computes there is nothing to hide.
constexpr int32_t ControlLagSteps(std::string_view devices) { return devices == "cuda" ? 1 : 0; }

}  // namespace troupe

#endif  // TROUPE_PLAN_CONTROL_LAG_H_
