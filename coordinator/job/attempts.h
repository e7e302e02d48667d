// Checkpoint attempts of a job, from the intent to the commit or abort. docs/architecture.md
// describes the protocol: synced intent, shards, votes, manifest, one synced commit.
#ifndef TROUPE_COORDINATOR_JOB_ATTEMPTS_H_
#define TROUPE_COORDINATOR_JOB_ATTEMPTS_H_

#include <optional>
#include <string>

#include "coordinator/state/job_failure.h"
#include "coordinator/state/job_state.h"
#include "coordinator/state/transition.h"
#include "coordinator/state/turn.h"

namespace troupe {

// Records the intent of a checkpoint after `step`. Step 0 means the first step at which every rank
// knows of the intent.
Attempt& RecordIntent(Job& job, int64_t step, Turn& turn);

// Requests a checkpoint from the running group inside its granted window. REQUIRES: has_folder and
// the group is running or being adopted.
Attempt& RequestCheckpoint(Job& job, Turn& turn);
// Returns the requested attempt that no rank has begun yet, if any; otherwise requests a new one.
Attempt& JoinOrRequestCheckpoint(Job& job, Turn& turn);

// Returns when an attempt is aborted for being late, counted from its begin on a rank or else from
// the request. Returns nullopt for a due attempt if its step has not been reached.
std::optional<MonotonicTime> AttemptDeadline(const Job& job, const Attempt& attempt,
                                             const TimeLimits& limits);

// Handles a rank's vote. REQUIRES: IsCurrent; the vote's incarnation is the worker's.
[[nodiscard]] Transition OnShardDone(Job& job, const v1::ShardDone& vote, const std::string& worker,
                                     Turn& turn);
[[nodiscard]] Transition OnShardFailed(Job& job, const v1::ShardFailed& message, Turn& turn);
// Handles rank 0's report that the manifest is written. REQUIRES: IsCurrent for rank 0.
[[nodiscard]] Transition OnManifestDone(Job& job, const v1::ManifestDone& message, Turn& turn);

// Asks rank 0's worker to write the manifest if all votes have arrived.
void AskForManifest(const Job& job, const Attempt& attempt, Turn& turn);

// Aborts only this attempt; training continues. If the ranks had stopped for it because the job was
// to end with it, they still hold the state and are asked to save it again a little later; a job
// that is to be cancelled in any case ends instead.
[[nodiscard]] Transition AbortAttempt(Job& job, int64_t attempt, const std::string& reason,
                                      Turn& turn);

// Aborts an attempt that has exceeded its deadline. Once it has begun, each rank that has not
// answered, nor answered another attempt since then, is a failed write of its host. If the ranks
// have stopped for it, they hold a state that may still be saved, so the group is not ended;
// further requests to ranks that have not answered wait behind their current work.
[[nodiscard]] Transition AbortLateAttempt(Job& job, int64_t attempt, Turn& turn);

// If the ranks have stopped to be saved, marks their open attempt as begun. If none is open,
// because the coordinator restarted after an abort, schedules SaveAgain.
void SaveAgainIfUnsaved(Job& job, Turn& turn);
// Runs when the time set by AbortAttempt has come: records another attempt for the step at which
// the ranks stopped and requests it, or requests images. REQUIRES: the group is running.
[[nodiscard]] Transition SaveAgain(Job& job, Turn& turn);
// Counts and returns the failure of ranks that do not answer: neither the last checkpoint nor
// images were written. The third group in a row without a commit that ends so after the last step
// ends the job. REQUIRES: the job has a group.
Breakdown CountHungSave(Job& job);

// Withdraws the plan to stop the ranks after a checkpoint (cancel or growth). Callers waiting for a
// cancel get `reason`, and the job continues. No effect if no stop was planned.
void CallOffStop(Job& job, const std::string& reason, Turn& turn);

// Marks all attempts of the epoch ABORTED because the epoch ends. Files of any of them may exist,
// because ranks may be ahead of their reports.
void DropAttempts(Job& job, const std::string& reason, Turn& turn);

// Drops the intents of due checkpoints that the ranks have passed without writing them.
void SkipPassedIntents(Job& job, int64_t reported_step, Turn& turn);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_JOB_ATTEMPTS_H_
