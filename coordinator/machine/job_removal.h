// Removes ended jobs from the state and the catalog. All functions are pure; deletion.h decides
// what may be removed.
#ifndef TROUPE_COORDINATOR_MACHINE_JOB_REMOVAL_H_
#define TROUPE_COORDINATOR_MACHINE_JOB_REMOVAL_H_

#include <optional>
#include <string>

#include "base/clock.h"
#include "coordinator/machine/coordinator_state.h"
#include "coordinator/state/event.h"
#include "coordinator/state/job_state.h"
#include "coordinator/state/turn.h"

namespace troupe {

// Removes `job` now, or once the files of its checkpoints are deleted. The call is answered then,
// or at once with the reason why the job stays.
void DeleteJob(Job& job, const DeleteJobCall& event, CoordinatorState& state, Turn& turn);

// Recovers the deletion of a job that a former leader began: its files have as long to be deleted
// as after a new request.
void AdoptRemoval(const Job& job, MonotonicTime now, CoordinatorState& state);

// Ends deletions whose files were not removed in time: a job whose commits were to be deleted
// stays, and the callers get an error; any other job is removed, and its files remain.
void EndLateRemovals(CoordinatorState& state, Turn& turn);
std::optional<MonotonicTime> NextRemovalDeadline(const CoordinatorState& state);

// Removes the job if it is being deleted and none of its files is left.
void RemoveIfDeleted(const std::string& id, CoordinatorState& state, Turn& turn);

// Removes ended jobs beyond the number or age that CoordinatorOptions keeps. Checks once a minute,
// and whenever a job ended in this turn.
void LetEndedGo(CoordinatorState& state, Turn& turn);
std::optional<MonotonicTime> NextTimeToLetEndedGo(const CoordinatorState& state);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_MACHINE_JOB_REMOVAL_H_
