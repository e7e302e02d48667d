// The messages about a checkpoint attempt: its intent, the request to the ranks, its manifest and
// its result. Pure.
#ifndef TROUPE_COORDINATOR_JOB_ATTEMPT_MESSAGES_H_
#define TROUPE_COORDINATOR_JOB_ATTEMPT_MESSAGES_H_

#include "coordinator/state/job_state.h"

namespace troupe {

// Returns whether the ranks stop after this attempt: it is the one due at the job's last step, or
// the one after which they stop for another purpose (coordinator/state/stop.h).
bool ThenStop(const Job& job, const Attempt& attempt);
v1::CheckpointIntent IntentOf(const Job& job, const Attempt& attempt);
// Returns the message that requests the attempt from the ranks. REQUIRES: the job has a group.
v1::CoordinatorMessage RequestOf(const Job& job, const Attempt& attempt);
// Returns the manifest of an attempt. It depends only on durable state and the votes, so that every
// leader requests the same bytes: a manifest written after another leader's commit must not change
// its digest. REQUIRES: all ranks have voted.
v1::CheckpointManifest ManifestOf(const Job& job, const Attempt& attempt);
// Returns the message that reports the result of attempt number `attempt` to ranks of
// `group_epoch`.
v1::CoordinatorMessage FinalizedOf(const Job& job, uint64_t group_epoch, int64_t attempt,
                                   bool committed);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_JOB_ATTEMPT_MESSAGES_H_
