// Step reports: history, watchers, measurements, and the actions that they trigger.
#ifndef TROUPE_COORDINATOR_PROGRESS_H_
#define TROUPE_COORDINATOR_PROGRESS_H_

#include "coordinator/job_state.h"
#include "coordinator/transition.h"
#include "coordinator/turn.h"

namespace troupe {

// REQUIRES: IsCurrent for the report's epoch, rank and worker.
[[nodiscard]] Transition OnStepReport(Job& job, const v1::StepReport& report, Turn& turn);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_PROGRESS_H_
