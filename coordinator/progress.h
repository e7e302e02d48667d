// Step reports: history, watchers, measurements, and the actions that they trigger.
#ifndef TROUPE_COORDINATOR_PROGRESS_H_
#define TROUPE_COORDINATOR_PROGRESS_H_

#include "coordinator/job.h"
#include "coordinator/turn.h"

namespace troupe {

// REQUIRES: IsCurrent for the report's epoch, rank and worker.
void OnStepReport(Job& job, const v1::StepReport& report, Turn& turn);

// Adds the reports that are not durable yet to the turn's writes and acknowledges them to rank 0's
// worker.
void FlushReports(Job& job, Turn& turn);

// Adds the job's record to the turn's writes, together with the reports up to its step. Without
// them the record would be ahead of the history, and a restarted coordinator would ignore these
// reports as known when they are resent.
void SaveRecord(Job& job, Turn& turn);

// Makes the job SUCCEEDED if its last step is reported and, if it has a folder, committed. Returns
// whether it did.
bool EndIfFinished(Job& job, Turn& turn);

// How long a running group may go without progress before it counts as hung (HangLimit), given what
// it may be saving or validating at present.
Duration HangLimitOf(const Job& job, const TimeLimits& limits);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_PROGRESS_H_
