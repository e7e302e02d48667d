// Handles hosts that cannot write their part of the checkpoints, because a job without checkpoints
// makes no safe progress.
#ifndef TROUPE_COORDINATOR_JOB_FAILED_WRITES_H_
#define TROUPE_COORDINATOR_JOB_FAILED_WRITES_H_

#include <string>

#include "coordinator/state/transition.h"
#include "coordinator/state/turn.h"

namespace troupe {

// Records, once, a failed write against the host of `rank`; the attempt is aborted. If the worker
// failed for the third time since the newest commit and the job has room on other hosts that are
// not set aside, the group ends and restarts there from the newest commit. This happens once
// between two commits: if the next host cannot write either, the cause is not the host. It never
// happens to a job that would be restored from images, which bind its ranks to their workers.
// REQUIRES: the job has a group.
[[nodiscard]] Transition OnFailedWrite(Job& job, int32_t rank, const std::string& reason,
                                       Turn& turn);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_JOB_FAILED_WRITES_H_
