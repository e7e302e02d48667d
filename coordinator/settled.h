// What becomes of a job's settled attempts: commits that retention lets go, that are pinned, or
// that turn out bad, and what was aborted and is to be deleted. All pure.
#ifndef TROUPE_COORDINATOR_SETTLED_H_
#define TROUPE_COORDINATOR_SETTLED_H_

#include <string>

#include "coordinator/job.h"

namespace troupe {

// Marks what the policy lets go, and enough newer verified commits supersede, as DELETING.
void Retire(Job& job, Turn& turn);

// Keeps a checkpoint from retention, or leaves it to retention again, which then acts at once.
// Replies with the record; NOT_FOUND where the job has no such commit.
Status PinCheckpoint(Job& job, const v1::PinCheckpointRequest& request, CallId call, Turn& turn);

// Keeps the commit at `path` for inspection but never restores it again.
void Quarantine(Job& job, const std::string& path, const std::string& reason, Turn& turn);

// Tells the worker where rank 0 runs or ran to delete the directory of `record`.
void SendDeletion(Job& job, const v1::CheckpointRecord& record, Turn& turn);
// Tells the worker where rank 0 runs or ran to delete what is to be deleted and no rank may still
// write to.
void SendDeletions(Job& job, Turn& turn);
// The record goes, unless a rank may have written since. REQUIRES: JudgeMessage accepted it.
void OnCheckpointDeleted(Job& job, const v1::CheckpointDeleted& message, Turn& turn);

enum class Occasion { kCommit, kOther };
// Asks the worker where rank 0 runs or ran to read back the commits without which nothing more can
// be deleted, each once on a stream; again what it could not read, after the next commit.
void SendVerifications(Job& job, Occasion occasion, Turn& turn);
// What asks a worker to read the commit back.
v1::CoordinatorMessage VerificationOf(const Job& job, const v1::CheckpointRecord& record);
// The commit is verified, or doubted if `worker` found it damaged (doubts.h); what that lets go is
// deleted. Where it could not be read nothing changes. REQUIRES: JudgeMessage accepted it.
void OnCheckpointVerified(Job& job, const v1::CheckpointVerified& message,
                          const std::string& worker, Turn& turn);

// Whether a commit or quarantined checkpoint of the job is at `path`.
bool HasCheckpointAt(const Job& job, const std::string& path);
// A quarantined checkpoint, found whole by the caller, is a commit again, and a doubted one is so
// without a doubt. Replies with the record; NOT_FOUND where the job has no such one,
// FAILED_PRECONDITION for another digest than that of the commit.
Status LiftQuarantine(Job& job, const v1::LiftQuarantineRequest& request, CallId call, Turn& turn);

// SendDeletions and SendVerifications, if a rank runs or ran on `worker`, which has a new stream.
void SendFileWorkAgain(Job& job, const std::string& worker, Turn& turn);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SETTLED_H_
