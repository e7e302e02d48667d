// The life of a job: ends its group or the job itself when modules below ask for it by a transition
// (coordinator/state/transition.h), or when its time has come. group.h opens a group and takes it
// to its run; recovery.h ends one that failed and decides what follows. Pure.
#ifndef TROUPE_COORDINATOR_JOB_LIFECYCLE_H_
#define TROUPE_COORDINATOR_JOB_LIFECYCLE_H_

#include <optional>

#include "base/clock.h"
#include "coordinator/state/job_state.h"
#include "coordinator/state/options.h"
#include "coordinator/state/transition.h"
#include "coordinator/state/turn.h"

namespace troupe {

// Does what `transition` asks for.
void Apply(Job& job, Transition transition, Turn& turn);

// OnJobTime does what is due at turn.now; NextJobDeadline returns when the next action is due.
void OnJobTime(Job& job, Turn& turn);
std::optional<MonotonicTime> NextJobDeadline(const Job& job, const CoordinatorOptions& options);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_JOB_LIFECYCLE_H_
