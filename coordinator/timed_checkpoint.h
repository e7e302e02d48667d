// Checkpoints by time: checkpoint.interval_seconds, where checkpoint.interval gives no number of
// steps. The time counts from the state of the last commit, or from when training began that no
// commit holds; that moment is durable, so that a restart of the coordinator or a recovery does not
// begin it anew. All pure.
#ifndef TROUPE_COORDINATOR_TIMED_CHECKPOINT_H_
#define TROUPE_COORDINATOR_TIMED_CHECKPOINT_H_

#include <optional>

#include "base/clock.h"
#include "coordinator/job.h"
#include "coordinator/turn.h"

namespace troupe {

// The job's ranks run, begun or adopted: from the durable moment on, or from now.
void CountOnCheckpointTime(Job& job, Turn& turn);

// A commit holds the state of time `taken`.
void CountFromCheckpoint(Job& job, MonotonicTime taken, Turn& turn);

// An attempt was aborted: one by time waits a little before it is tried again.
void PostponeTimedCheckpoint(Job& job, Turn& turn);

// When a checkpoint is to be asked for; absent: not as things are (by steps, none at all, one is
// under way already, or the ranks are about to end or have stopped).
std::optional<MonotonicTime> TimedCheckpointDue(const Job& job);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_TIMED_CHECKPOINT_H_
