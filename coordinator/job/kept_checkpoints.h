// The checkpoints of a job that are committed, quarantined or to be deleted: retention, pins,
// deletion and the requests to read commits back. Pure.
#ifndef TROUPE_COORDINATOR_JOB_KEPT_CHECKPOINTS_H_
#define TROUPE_COORDINATOR_JOB_KEPT_CHECKPOINTS_H_

#include <chrono>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "coordinator/state/job_state.h"
#include "coordinator/state/turn.h"

namespace troupe {

// Marks as DELETING the commits that the retention policy does not keep and that enough newer
// verified commits supersede.
void Retire(Job& job, Turn& turn);

// Protects a checkpoint from retention, or ends that protection; retention then acts at once.
// Replies with the record. NOT_FOUND if the job has no such commit or quarantined checkpoint,
// INVALID_ARGUMENT if the request names neither step nor path.
Status PinCheckpoint(Job& job, const v1::PinCheckpointRequest& request, CallId call, Turn& turn);

// Pins `record`, one of the job's commits that a user has just requested, if retention would delete
// it in the current state. Returns whether it was pinned.
bool PinIfRetired(const Job& job, v1::CheckpointRecord& record);

// Keeps the commit at `path` for inspection but never restores it again.
void Quarantine(Job& job, const std::string& path, const std::string& reason, Turn& turn);

// Interval after which the removal of files is requested again on the same stream. A worker that
// lacks the folder, or cannot write to it, does not answer.
inline constexpr auto kDeleteAgainInterval = std::chrono::minutes(1);
// The most removals of a job that a worker is asked for within that interval without an answer. Its
// mailbox holds 1024 removals, so those of several jobs; it drops what finds the mailbox full,
// which then counts as not answered.
inline constexpr int64_t kMostDeletionsAsked = 128;

// Asks the worker where rank 0 runs or ran to delete the directory of `record`.
void SendDeletion(Job& job, const v1::CheckpointRecord& record, Turn& turn);
// Asks the worker where rank 0 runs or ran to delete the checkpoints that are to be deleted and
// that no rank may still write to, except those that it was asked for lately: first those that were
// never asked for, then those whose request is the oldest, up to kMostDeletionsAsked. If that
// leaves some that were not asked for on this stream, sets delete_again_time.
void SendDeletions(Job& job, Turn& turn);

// Removes the record and asks for further deletions. No effect if ranks could still write when the
// deletion was requested: the answer may be older than their last write. REQUIRES: JudgeMessage
// accepted it.
void OnCheckpointDeleted(Job& job, const v1::CheckpointDeleted& message, Turn& turn);

enum class Occasion { kCommit, kOther };
// Asks the worker where rank 0 runs or ran to read back the commits without which nothing more can
// be deleted. Each is requested once per stream; one that could not be read is requested again
// after the next commit.
void SendVerifications(Job& job, Occasion occasion, Turn& turn);

// The message that asks a worker to read the commit back.
v1::CoordinatorMessage VerificationOf(const Job& job, const v1::CheckpointRecord& record);

// Whether `record` is a commit or a quarantined checkpoint at `path`.
bool IsListedAt(const v1::CheckpointRecord& record, const std::string& path);
// Whether a commit or quarantined checkpoint of the job is at `path`.
bool HasCheckpointAt(const Job& job, const std::string& path);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_JOB_KEPT_CHECKPOINTS_H_
