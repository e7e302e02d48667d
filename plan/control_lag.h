// How late a rank may learn of a step what all ranks know together after it (the plan's control_lag_steps). Frozen with the
// plan: all ranks act after the same step. Pure.
#ifndef TROUPE_PLAN_CONTROL_LAG_H_
#define TROUPE_PLAN_CONTROL_LAG_H_

#include <cstdint>
#include <string_view>

namespace troupe {

// With more a step could be handed over by a ticket of which the word that says what is due after it knew nothing.
inline constexpr int32_t kControlLagStepsMax = 1;

// On devices of this kind (the job's `devices`). A GPU is to have its next step when it is done with one: that is handed
// over before the result of the one before it is read. Where the host computes there is nothing to wait for.
constexpr int32_t ControlLagSteps(std::string_view devices) { return devices == "cuda" ? 1 : 0; }

}  // namespace troupe

#endif  // TROUPE_PLAN_CONTROL_LAG_H_
