// Step reports: history, watchers, measurements, and the actions that they trigger.
#ifndef TROUPE_COORDINATOR_JOB_PROGRESS_H_
#define TROUPE_COORDINATOR_JOB_PROGRESS_H_

#include "coordinator/state/job_state.h"
#include "coordinator/state/transition.h"
#include "coordinator/state/turn.h"

namespace troupe {

// REQUIRES: IsCurrent for the report's epoch, rank and worker.
[[nodiscard]] Transition OnStepReport(Job& job, const v1::StepReport& report, Turn& turn);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_JOB_PROGRESS_H_
