// The unplanned end of a group epoch: one recorded cause, then the queue again or the end of the
// budget.
#ifndef TROUPE_COORDINATOR_JOB_RECOVERY_H_
#define TROUPE_COORDINATOR_JOB_RECOVERY_H_

#include <string>

#include "coordinator/state/job_failure.h"
#include "coordinator/state/job_state.h"
#include "coordinator/state/turn.h"

namespace troupe {

// Ends the group and asks its ranks to stop. A primary cause is recorded at once, a secondary one
// after a short wait for the primary. Without a group nothing happens.
void BreakGroup(Job& job, Breakdown breakdown, Turn& turn);

// Ends kDraining and records the cause. The job becomes RECOVERING, FAILED (budget spent or fatal),
// CANCELLED if it was to be cancelled, or SUCCEEDED if its last step was committed.
void FinalizeBreakdown(Job& job, const Breakdown& breakdown, Turn& turn);

// kDraining: the failure that is recorded if no primary one arrives. A hang is blamed on the rank
// that the flight reports of all ranks point to. `bugs`: those of the coordinator's options.
v1::Failure FinalFailure(const Job& job, const KnownBugs& bugs);

// Handles the report of what a rank was doing when the job hung. kDraining ends once every rank has
// reported.
void OnRankFlight(Job& job, const v1::RankFlight& message, Turn& turn);

void OnRankFailed(Job& job, const v1::RankFailed& message, const std::string& worker, Turn& turn);
void OnRankStopped(Job& job, const v1::RankStopped& message, const std::string& worker, Turn& turn);
// `reason`: how the loss was detected. Blames nobody if the worker ended while the coordinator
// was away, because it may have been asked to stop.
void OnWorkerLost(Job& job, const std::string& worker, const std::string& reason, Turn& turn);
// The worker was asked to stop and has sent a Goodbye, which is nobody's fault.
void OnWorkerStopped(Job& job, const std::string& worker, Turn& turn);

// Ends a job that waits to be restored and has only quarantined commits, because a restart from its
// seed would only appear to continue it. No effect on other jobs.
void FailIfNoCommitIsLeft(Job& job, Turn& turn);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_JOB_RECOVERY_H_
