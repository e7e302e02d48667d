// Handles the result of reading a commit back: the commit is verified, doubted, or found
// intact again. Pure.
#ifndef TROUPE_COORDINATOR_JOB_COMMIT_VERIFICATION_H_
#define TROUPE_COORDINATOR_JOB_COMMIT_VERIFICATION_H_

#include <string>

#include "base/status.h"
#include "coordinator/state/job_state.h"
#include "coordinator/state/transition.h"
#include "coordinator/state/turn.h"

namespace troupe {

// Marks the commit verified, or doubted if `worker` found it damaged (doubts.h), and deletes what
// is superseded as a result. A commit that could not be read does not change. REQUIRES:
// JudgeMessage accepted it.
[[nodiscard]] Transition OnCheckpointVerified(Job& job, const v1::CheckpointVerified& message,
                                              const std::string& worker, Turn& turn);

// Makes a quarantined checkpoint, which the caller found intact, a verified commit again, and pins
// it if retention would delete it; clears the doubt of a doubted commit. Replies with the record;
// NOT_FOUND if the job has no such checkpoint, FAILED_PRECONDITION if the digest differs from that
// of the commit.
Status LiftQuarantine(Job& job, const v1::LiftQuarantineRequest& request, CallId call, Turn& turn);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_JOB_COMMIT_VERIFICATION_H_
