// The life of a job: ends its group or the job itself when modules below ask for it by a transition
// (coordinator/state/transition.h). group.h opens a group and takes it to its run; recovery.h ends
// one that failed and decides what follows; job_timers.h acts when its time has come. Pure.
#ifndef TROUPE_COORDINATOR_JOB_LIFECYCLE_H_
#define TROUPE_COORDINATOR_JOB_LIFECYCLE_H_

#include "coordinator/state/job_state.h"
#include "coordinator/state/transition.h"
#include "coordinator/state/turn.h"

namespace troupe {

// Does what `transition` asks for.
void Apply(Job& job, Transition transition, Turn& turn);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_JOB_LIFECYCLE_H_
