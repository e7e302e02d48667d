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

// The job goes if it is being deleted and no file of it is left.
void RemoveIfDeleted(const std::string& id, CoordinatorState& state, Turn& turn);

// Lets go of ended jobs that are more, or older, than shall be kept (CoordinatorOptions). Looks at
// them once a minute, and where a job ended in this turn.
void LetEndedGo(CoordinatorState& state, Turn& turn);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_JOB_REMOVAL_H_
