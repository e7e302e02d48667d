// Step reports: history, watchers, measurements, and what they trigger.
#ifndef TROUPE_COORDINATOR_PROGRESS_H_
#define TROUPE_COORDINATOR_PROGRESS_H_

#include "coordinator/job.h"
#include "coordinator/turn.h"

namespace troupe {

// REQUIRES: IsCurrent for the report's epoch, rank and worker.
void OnStepReport(Job& job, const v1::StepReport& report, Turn& turn);

// Puts the reports that are not durable yet into the turn's writes and acknowledges them to rank
// 0's worker.
void FlushReports(Job& job, Turn& turn);

// Puts the job's record into the turn's writes. Its step is never ahead of the history: the reports
// up to it go along, or a restarted coordinator would take them for known when they are sent again.
void SaveRecord(Job& job, Turn& turn);

// The job is SUCCEEDED if its last step is reported and, where it has a folder, committed. Returns
// whether it is.
bool EndIfFinished(Job& job, Turn& turn);

// How long a running group may go without progress before it counts as hung (HangLimit), with what
// it may save or validate just now.
Duration HangLimitOf(const Job& job, const TimeLimits& limits);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_PROGRESS_H_
