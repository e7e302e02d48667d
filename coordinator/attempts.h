// Checkpoint attempts of a job, from the intent to the commit or abort, and the deletion of old
// commits. The protocol is in docs/architecture.md: intent synced, shards, votes, manifest, one
// synced commit.
#ifndef TROUPE_COORDINATOR_ATTEMPTS_H_
#define TROUPE_COORDINATOR_ATTEMPTS_H_

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

// Whether the ranks end after this attempt: the final one, or that of a cancel.
bool ThenStop(const Job& job, const Attempt& attempt);
v1::CheckpointIntent IntentOf(const Job& job, const Attempt& attempt);

// A vote. REQUIRES: IsCurrent; the vote's incarnation is the worker's.
void OnShardDone(Job& job, const v1::ShardDone& vote, const std::string& worker, Turn& turn);
void OnShardFailed(Job& job, const v1::ShardFailed& message, Turn& turn);
// REQUIRES: IsCurrent for rank 0.
void OnManifestDone(Job& job, const v1::ManifestDone& message, Turn& turn);

// Asks rank 0's worker for the manifest if all votes are in.
void AskForManifest(const Job& job, const Attempt& attempt, Turn& turn);

// Aborts the attempt alone: training goes on, unless the job was to end with it.
void AbortAttempt(Job& job, int64_t attempt, const std::string& reason, Turn& turn);

// The epoch ends: attempts that a rank may have begun are ABORTED, the others never were.
void DropAttempts(Job& job, const std::string& reason, Turn& turn);

// Drops the intents of due checkpoints that the ranks passed by.
void SkipPassedIntents(Job& job, int64_t reported_step, Turn& turn);

// Keeps the commit at `path` for inspection but never restores it again.
void Quarantine(Job& job, const std::string& path, const std::string& reason, Turn& turn);

// Tells `worker`, where one of the job's ranks runs or ran, to delete what is to be deleted.
void SendDeletions(const Job& job, Turn& turn);
void OnCheckpointDeleted(Job& job, const v1::CheckpointDeleted& message, Turn& turn);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_ATTEMPTS_H_
