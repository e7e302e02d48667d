// The cancel of a job: at once, or after a commit of the step at which its ranks stop. Pure.
#ifndef TROUPE_COORDINATOR_JOB_CANCEL_H_
#define TROUPE_COORDINATOR_JOB_CANCEL_H_

#include "coordinator/state/event.h"
#include "coordinator/state/job_state.h"
#include "coordinator/state/turn.h"

namespace troupe {

// Does what CancelJobRequest (service.proto) describes. The reply is sent now or when the job has
// ended. A call that wants no commit also ends the wait of the others.
void CancelJob(Job& job, const CancelJobCall& event, Turn& turn);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_JOB_CANCEL_H_
