// Checkpoints by time: checkpoint.interval_seconds, used if checkpoint.interval gives no number of
// steps. The time counts from the state of the last commit or, while there is none, from the start
// of the training that no commit holds. That moment is durable, so that neither a restart of the
// coordinator nor a recovery restarts the count. All functions are pure.
#ifndef TROUPE_COORDINATOR_JOB_TIMED_CHECKPOINT_H_
#define TROUPE_COORDINATOR_JOB_TIMED_CHECKPOINT_H_

#include <optional>

#include "base/clock.h"
#include "coordinator/state/job_state.h"
#include "coordinator/state/turn.h"

namespace troupe {

// Called when the job's ranks run, started or adopted: counts from the durable moment, or from now.
void CountOnCheckpointTime(Job& job, Turn& turn);

// Counts from `taken`, the time of the state that a commit holds.
void CountFromCheckpoint(Job& job, MonotonicTime taken, Turn& turn);

// Called when an attempt was aborted: a timed one waits a little before it is tried again.
void PostponeTimedCheckpoint(Job& job, Turn& turn);

// When a checkpoint is to be requested; absent if none is in the present state (checkpoints are by
// steps or off, one is in progress, or the ranks are about to end or have stopped).
std::optional<MonotonicTime> TimedCheckpointDue(const Job& job);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_JOB_TIMED_CHECKPOINT_H_
