// Finalised attempts of a job: commits that retention deletes, that are pinned or that prove
// damaged, and aborted attempts that have to be deleted. All functions are pure.
#ifndef TROUPE_COORDINATOR_SETTLED_H_
#define TROUPE_COORDINATOR_SETTLED_H_

#include <string>

#include "coordinator/job.h"

namespace troupe {

// Marks as DELETING the commits that the retention policy does not keep and that enough newer
// verified commits supersede.
void Retire(Job& job, Turn& turn);

// Protects a checkpoint from retention, or ends that protection; retention then acts at once.
// Replies with the record. NOT_FOUND if the job has no such commit or quarantined checkpoint,
// INVALID_ARGUMENT if the request names neither step nor path.
Status PinCheckpoint(Job& job, const v1::PinCheckpointRequest& request, CallId call, Turn& turn);

// Keeps the commit at `path` for inspection but never restores it again.
void Quarantine(Job& job, const std::string& path, const std::string& reason, Turn& turn);

// Asks the worker where rank 0 runs or ran to delete the directory of `record`.
void SendDeletion(Job& job, const v1::CheckpointRecord& record, Turn& turn);
// Asks the worker where rank 0 runs or ran to delete every checkpoint that is to be deleted and
// that no rank may still write to.
void SendDeletions(Job& job, Turn& turn);
// Removes the record, unless a rank may have written since. REQUIRES: JudgeMessage accepted it.
void OnCheckpointDeleted(Job& job, const v1::CheckpointDeleted& message, Turn& turn);

enum class Occasion { kCommit, kOther };
// Asks the worker where rank 0 runs or ran to read back the commits without which nothing more can
// be deleted. Each is asked for once per stream; one that could not be read is asked for again
// after the next commit.
void SendVerifications(Job& job, Occasion occasion, Turn& turn);
// The message that asks a worker to read the commit back.
v1::CoordinatorMessage VerificationOf(const Job& job, const v1::CheckpointRecord& record);
// Marks the commit verified, or doubted if `worker` found it damaged (doubts.h), and deletes what
// is superseded as a result. A commit that could not be read does not change. REQUIRES:
// JudgeMessage accepted it.
void OnCheckpointVerified(Job& job, const v1::CheckpointVerified& message,
                          const std::string& worker, Turn& turn);

// Whether a commit or quarantined checkpoint of the job is at `path`.
bool HasCheckpointAt(const Job& job, const std::string& path);
// Makes a quarantined checkpoint, which the caller found whole, a verified commit again, and pins
// it if retention would delete it; clears the doubt of a doubted commit. Replies with the record;
// NOT_FOUND if the job has no such checkpoint, FAILED_PRECONDITION if the digest differs from that
// of the commit.
Status LiftQuarantine(Job& job, const v1::LiftQuarantineRequest& request, CallId call, Turn& turn);

// Runs SendDeletions and SendVerifications if a rank runs or ran on `worker`, which has a new
// stream.
void SendFileWorkAgain(Job& job, const std::string& worker, Turn& turn);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SETTLED_H_
