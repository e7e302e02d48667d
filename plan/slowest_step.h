// How long a step may take before anything of it was measured: what coordinator and ranks wait for
// alike.
#ifndef TROUPE_PLAN_SLOWEST_STEP_H_
#define TROUPE_PLAN_SLOWEST_STEP_H_

#include <algorithm>

#include "troupe/v1/plan.pb.h"

namespace troupe {

// Floating-point operations a second of the slowest processor worth training on.
inline constexpr double kSlowestFlops = 2e9;

// fault_tolerance.hang_seconds where it is not stated: as long as the pace of a job is not known,
// it hangs once it has finished no step for so long. Stated, it only lengthens limits.
inline constexpr double kDefaultHangSeconds = 60;

// Seconds of one step of `plan` if every rank had such a processor.
inline double SlowestStepSeconds(const v1::Plan& plan) {
  return plan.model_flops_per_step() / std::max(1, plan.ranks_size()) / kSlowestFlops;
}

}  // namespace troupe

#endif  // TROUPE_PLAN_SLOWEST_STEP_H_
