// The messages about a checkpoint attempt: its intent, the request to the ranks and its manifest.
// Pure.
#ifndef TROUPE_COORDINATOR_ATTEMPT_MESSAGES_H_
#define TROUPE_COORDINATOR_ATTEMPT_MESSAGES_H_

#include "coordinator/job.h"

namespace troupe {

// Returns whether the ranks end after this attempt: the final one, or that of a cancel.
bool ThenStop(const Job& job, const Attempt& attempt);
v1::CheckpointIntent IntentOf(const Job& job, const Attempt& attempt);
// Returns the message that asks the ranks for the attempt. REQUIRES: the job has a group.
v1::CoordinatorMessage RequestOf(const Job& job, const Attempt& attempt);
// Returns the manifest of an attempt for which all ranks have voted. It is a function of what is
// durable and of the votes alone, so that every leader that asks for an attempt's manifest asks for
// the same bytes: a manifest written after the commit of another must not change its digest.
v1::CheckpointManifest ManifestOf(const Job& job, const Attempt& attempt);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_ATTEMPT_MESSAGES_H_
