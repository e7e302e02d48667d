// Moves a job away from workers that drain (Draining, DrainWorker). While there is time, its ranks
// commit a checkpoint after one of their next steps and stop there, and the job is placed again, in
// a new group epoch that counts as no restart: no step is repeated. A group that has not run yet is
// placed again at once. The other groups train until their worker ends, and then recover from the
// newest commit: those of jobs without a checkpoint.folder, or for which the time is too short.
//
// A job that waits for the images of its ranks waits for the workers that have them, also while
// these drain.
#ifndef TROUPE_COORDINATOR_JOB_MOVE_H_
#define TROUPE_COORDINATOR_JOB_MOVE_H_

#include <string>

#include "coordinator/state/job_state.h"
#include "coordinator/state/transition.h"
#include "coordinator/state/turn.h"

namespace troupe {

// Requests the checkpoint after which the ranks stop, or ends the group, if the job has ranks on
// workers that drain. Call whenever the fleet or the job's phase has changed; a repeated call has
// no effect.
[[nodiscard]] Transition ConsiderMove(Job& job, Turn& turn);

// Returns the reason for which the running job does not leave workers of it that drain, such as "it
// has no checkpoint.folder"; empty if it can.
std::string WhyStays(const Job& job, const Fleet& fleet);

// For example "leaves worker-1, which is draining (SIGTERM)".
std::string MoveText(const Job& job, const Fleet& fleet);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_JOB_MOVE_H_
