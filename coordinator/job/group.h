// One formation of a job's ranks: start, addresses, readiness, and adoption after a
// coordinator's restart.
#ifndef TROUPE_COORDINATOR_JOB_GROUP_H_
#define TROUPE_COORDINATOR_JOB_GROUP_H_

#include <string>

#include "coordinator/state/job_state.h"
#include "coordinator/state/transition.h"
#include "coordinator/state/turn.h"

namespace troupe {

// Opens a new group epoch on `plan`: leases its devices, records the group, restores the newest
// commit and sends StartRanks. REQUIRES: IsQueued(job); every rank of `plan` is on a free device of
// a worker with a session.
void StartGroup(Job& job, v1::Plan plan, Turn& turn);

// Returns whether `epoch` is that of the job's current group and its `rank` runs on `worker`.
// Messages for which this is false are stale and change nothing.
bool IsCurrent(const Job& job, uint64_t epoch, int32_t rank, const std::string& worker,
               const Turn& turn);

void OnRankDevice(Job& job, const v1::RankDevice& message, Turn& turn);
void OnRankAddress(Job& job, const v1::RankAddress& message, Turn& turn);
void OnRankCores(Job& job, const v1::RankCores& message, Turn& turn);
[[nodiscard]] Transition OnRankReady(Job& job, const v1::RankReady& message, Turn& turn);

// Handles a new stream of `worker` in the same life. Adopts its ranks if the coordinator restarted,
// and resends everything that may have been lost with the old stream. Ranks that the worker no
// longer holds have died.
[[nodiscard]] Transition ResendTo(Job& job, const std::string& worker, const v1::Hello& hello,
                                  Turn& turn);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_JOB_GROUP_H_
