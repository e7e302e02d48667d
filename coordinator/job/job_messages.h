// Messages to the workers of a job's group, and replies to calls about the job.
#ifndef TROUPE_COORDINATOR_JOB_JOB_MESSAGES_H_
#define TROUPE_COORDINATOR_JOB_JOB_MESSAGES_H_

#include "base/status.h"
#include "coordinator/state/job_state.h"
#include "coordinator/state/turn.h"

namespace troupe {

// Sends `message` once to each worker that has a rank of the group.
void SendToGroup(const Job& job, const v1::CoordinatorMessage& message, Turn& turn);

// Answers `call` with the job's present state.
void ReplyWithJob(const Job& job, CallId call, Turn& turn);
void ReplyWithError(CallId call, Status status, Turn& turn);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_JOB_JOB_MESSAGES_H_
