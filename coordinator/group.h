// One formation of a job's ranks: start, addresses, readiness, tickets, adoption after a
// coordinator's restart.
#ifndef TROUPE_COORDINATOR_GROUP_H_
#define TROUPE_COORDINATOR_GROUP_H_

#include <string>

#include "coordinator/job.h"
#include "coordinator/turn.h"

namespace troupe {

// Opens a new group epoch on `plan`: leases its devices, records the group, restores the newest
// commit and sends StartRanks. REQUIRES: IsQueued(job); every rank of `plan` is on a free device of
// a worker with a session.
void StartGroup(Job& job, v1::Plan plan, Turn& turn);

// Whether `rank` of the job's current group runs on `worker` and `epoch` is that group's. Messages
// for which this is false are stale and change nothing (facts: R2).
bool IsCurrent(const Job& job, uint64_t epoch, int32_t rank, const std::string& worker,
               const Turn& turn);

void OnRankAddress(Job& job, const v1::RankAddress& message, Turn& turn);
void OnRankCores(Job& job, const v1::RankCores& message, Turn& turn);
void OnRankReady(Job& job, const v1::RankReady& message, Turn& turn);

// Grants the next window: records the intents of its due checkpoints and sends the ticket to all
// workers of the group. Also renews the lifetime where the window cannot grow. REQUIRES: the group
// is running.
void GrantTicket(Job& job, Turn& turn);

// Grants a ticket if half of the newest one's steps or lifetime are used.
void RenewTicket(Job& job, Turn& turn);
MonotonicTime TicketRenewalTime(const Group& group, const TimeLimits& limits);

// `worker` has a new stream of the same life: its ranks are adopted if the coordinator restarted,
// and whatever may have been lost with the old stream is said again. Ranks that it no longer holds
// have died.
void ResendTo(Job& job, const std::string& worker, const v1::Hello& hello, Turn& turn);

// Seconds; 0 until a step was measured.
double MedianStepSeconds(const Job& job);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_GROUP_H_
