// The longest time that a step may take before any step was measured. The coordinator and the ranks
// use the same limit.
#ifndef TROUPE_PLAN_COST_SLOWEST_STEP_H_
#define TROUPE_PLAN_COST_SLOWEST_STEP_H_

#include <algorithm>

#include "plan/job/key_schema.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// FLOPs per second of the slowest processor that is supported for training.
inline constexpr double kSlowestFlops = 2e9;

// The default of fault_tolerance.hang_seconds. While the pace of a job is not known, the job counts
// as hung when it has finished no step for this time. A stated value can only lengthen the limits.
inline double DefaultHangSeconds() { return DefaultNumber("fault_tolerance.hang_seconds"); }

// Seconds of one step of `plan` if every rank had such a processor.
inline double SlowestStepSeconds(const v1::Plan& plan) {
  return plan.model_flops_per_step() / std::max(1, plan.ranks_size()) / kSlowestFlops;
}

}  // namespace troupe

#endif  // TROUPE_PLAN_COST_SLOWEST_STEP_H_
