// Checkpoint attempts of a job, from the intent to the commit or abort, and the deletion of old
// commits. The protocol is in docs/architecture.md: intent synced, shards, votes, manifest, one
// synced commit.
#ifndef TROUPE_COORDINATOR_ATTEMPTS_H_
#define TROUPE_COORDINATOR_ATTEMPTS_H_

#include <optional>
#include <string>

#include "coordinator/job.h"
#include "coordinator/turn.h"

namespace troupe {

// Records the intent of a checkpoint after `step`, or (step 0) after the first step at which every
// rank knows of it.
Attempt& RecordIntent(Job& job, int64_t step, Turn& turn);

// Asks the running group for a checkpoint inside its granted window.
// REQUIRES: has_folder and the group is running or being adopted.
Attempt& RequestCheckpoint(Job& job, Turn& turn);
// The one that is asked for already, if no rank has begun it; else a request of its own.
Attempt& JoinOrRequestCheckpoint(Job& job, Turn& turn);

// When an attempt is aborted for being late: since a rank began it, or since the ranks were asked
// for it. Absent for a due one whose step is yet to come.
std::optional<MonotonicTime> AttemptDeadline(const Job& job, const Attempt& attempt,
                                             const TimeLimits& limits);

// A vote. REQUIRES: IsCurrent; the vote's incarnation is the worker's.
void OnShardDone(Job& job, const v1::ShardDone& vote, const std::string& worker, Turn& turn);
void OnShardFailed(Job& job, const v1::ShardFailed& message, Turn& turn);
// REQUIRES: IsCurrent for rank 0.
void OnManifestDone(Job& job, const v1::ManifestDone& message, Turn& turn);

// Asks rank 0's worker for the manifest if all votes are in.
void AskForManifest(const Job& job, const Attempt& attempt, Turn& turn);

// Aborts the attempt alone: training goes on. Where the ranks have stopped for it, because the job
// was to end with it, they hold the state and are asked to save it again a little later.
void AbortAttempt(Job& job, int64_t attempt, const std::string& reason, Turn& turn);

// Its time is over: AbortAttempt. Where the ranks have stopped for it, those that have not answered
// hold a state that may still be kept, so that the group is not ended for it: what else they are
// asked for waits behind what they do now.
void AbortLateAttempt(Job& job, int64_t attempt, Turn& turn);

// If the ranks have stopped to be saved: the attempt at it has begun; without an open one, which a
// restart of the coordinator after an abort leaves, schedules what SaveAgain does.
void SaveAgainIfUnsaved(Job& job, Turn& turn);
// The time that AbortAttempt set has come: records another attempt of the step at which the ranks
// stopped and asks for it, or for images. REQUIRES: the group is running.
void SaveAgain(Job& job, Turn& turn);
// Neither the last checkpoint nor images came of ranks that do not answer: the group ends.
void BreakHungSave(Job& job, Turn& turn);

// The ranks do not stop after a checkpoint to be cancelled, or to grow, after all: who waits for a
// cancel is told why, and the job goes on. No effect where they were not to stop.
void CallOffStop(Job& job, const std::string& reason, Turn& turn);

// The epoch ends: all its attempts are ABORTED. Ranks may have run ahead of their reports, so that
// there may be files of each.
void DropAttempts(Job& job, const std::string& reason, Turn& turn);

// Drops the intents of due checkpoints that the ranks passed by.
void SkipPassedIntents(Job& job, int64_t reported_step, Turn& turn);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_ATTEMPTS_H_
