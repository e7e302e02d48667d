// Tickets: the windows of steps that a group's ranks may run without further permission, with the
// checkpoints that are due in them. Pure.
#ifndef TROUPE_COORDINATOR_JOB_TICKETS_H_
#define TROUPE_COORDINATOR_JOB_TICKETS_H_

#include "base/clock.h"
#include "base/time_limits.h"
#include "coordinator/state/job_state.h"
#include "coordinator/state/turn.h"

namespace troupe {

// Returns the message with the group's newest ticket. REQUIRES: the job has a group.
v1::CoordinatorMessage TicketOf(const Job& job, const TimeLimits& limits);

// Grants the next window: records the intents of its due checkpoints and sends the ticket to all
// workers of the group. Renews the lifetime even if the window cannot grow. REQUIRES: the group is
// running.
void GrantTicket(Job& job, Turn& turn);

// Grants a ticket if half of the newest one's steps or lifetime is used.
void RenewTicket(Job& job, Turn& turn);
MonotonicTime TicketRenewalTime(const Group& group, const TimeLimits& limits);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_JOB_TICKETS_H_
