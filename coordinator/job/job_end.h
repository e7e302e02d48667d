// The end of a job. Pure.
#ifndef TROUPE_COORDINATOR_JOB_JOB_END_H_
#define TROUPE_COORDINATOR_JOB_JOB_END_H_

#include "coordinator/state/job_state.h"
#include "coordinator/state/transition.h"
#include "coordinator/state/turn.h"

namespace troupe {

// Ends the job: records the state and its cause, stops the ranks, drops unfinished attempts and
// answers every waiting call.
void EndJob(Job& job, const JobEnd& end, Turn& turn);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_JOB_JOB_END_H_
