// The end of a group epoch that was not asked for: one recorded cause, then the queue again or the
// end of the budget.
#ifndef TROUPE_COORDINATOR_RECOVERY_H_
#define TROUPE_COORDINATOR_RECOVERY_H_

#include <string>

#include "coordinator/job.h"
#include "coordinator/turn.h"

namespace troupe {

struct Breakdown {
  v1::Failure failure;
  bool secondary = false;  // follows from another failure that may still be reported
  bool fatal = false;      // would fail the same way again: the job is not recovered
  // The host's folder is to blame, or the job's checkpoint.folder: the host is set aside and others
  // are tried; where there are none it is fatal.
  bool of_folder = false;
};

// Ends the group: its ranks are told to stop; the cause is recorded at once, or, for a secondary
// one, after a short wait for the primary one. Without a group nothing happens.
void BreakGroup(Job& job, Breakdown breakdown, Turn& turn);

// kSettling is over: records the cause; the job is RECOVERING, FAILED (budget spent or fatal), or,
// where it was to be cancelled or had committed its last step, CANCELLED or SUCCEEDED.
void SettleBreakdown(Job& job, const Breakdown& breakdown, Turn& turn);

// kSettling: the failure that is recorded if no primary one comes; a hang is blamed on the rank
// that the flights of all ranks point to.
v1::Failure SettledFailure(const Job& job);

// What a rank was doing when the job hung. A hang settles once every rank has said so.
void OnRankFlight(Job& job, const v1::RankFlight& message, Turn& turn);

void OnRankFailed(Job& job, const v1::RankFailed& message, const std::string& worker, Turn& turn);
void OnRankStopped(Job& job, const v1::RankStopped& message, const std::string& worker, Turn& turn);
// `reason` says how it is known.
void OnWorkerLost(Job& job, const std::string& worker, const std::string& reason, Turn& turn);

// Ends a job that waits to be restored and of whose commits every one is quarantined: from its seed
// it would only seem to go on. No effect on any other.
void FailIfNoCommitIsLeft(Job& job, Turn& turn);

v1::Failure MakeFailure(const std::string& cause, const std::string& message, int32_t rank = -1,
                        const std::string& worker = {});

// "RANK_CRASHED: rank 2 on worker-1: …", for logs and events.
std::string FailureText(const v1::Failure& failure);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_RECOVERY_H_
