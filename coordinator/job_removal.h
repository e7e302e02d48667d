// Ended jobs leave the state and the catalog. All pure; what decides it is in deletion.h.
#ifndef TROUPE_COORDINATOR_JOB_REMOVAL_H_
#define TROUPE_COORDINATOR_JOB_REMOVAL_H_

#include <string>

#include "coordinator/event.h"
#include "coordinator/machine.h"
#include "coordinator/turn.h"

namespace troupe {

// `job` of the state is to go: it goes now, or once the files of its checkpoints are deleted. The
// call is answered then, or now with why it stays.
void DeleteJob(Job& job, const DeleteJobCall& event, CoordinatorState& state, Turn& turn);

// A job of a former leader that is being deleted: its files have as long to go as if it had been
// asked for now.
void AdoptRemoval(const Job& job, MonotonicTime now, CoordinatorState& state);

// Jobs whose files have not been removed in time: one whose commits were to be removed stays, and
// those who asked are told; another one goes, and its files stay.
void EndLateRemovals(CoordinatorState& state, Turn& turn);

// The job goes if it is being deleted and no file of it is left.
void RemoveIfDeleted(const std::string& id, CoordinatorState& state, Turn& turn);

// Lets go of ended jobs that are more, or older, than shall be kept (CoordinatorOptions). Looks at
// them once a minute, and where a job ended in this turn.
void LetEndedGo(CoordinatorState& state, Turn& turn);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_JOB_REMOVAL_H_
