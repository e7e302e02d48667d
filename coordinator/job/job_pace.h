// The speed of a job, and the time that it may go without progress. Pure.
#ifndef TROUPE_COORDINATOR_JOB_JOB_PACE_H_
#define TROUPE_COORDINATOR_JOB_JOB_PACE_H_

#include "base/clock.h"
#include "base/time_limits.h"
#include "coordinator/state/job_state.h"

namespace troupe {

// Returns the median step time in seconds; 0 until a step was measured.
double MedianStepSeconds(const Job& job);

// The time that a running group may go without progress before it counts as hung (HangLimit), given
// what it may be saving or validating at present.
Duration HangLimitOf(const Job& job, const TimeLimits& limits);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_JOB_JOB_PACE_H_
