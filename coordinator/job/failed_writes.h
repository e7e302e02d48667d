// Handles hosts that cannot write their part of the checkpoints, because a job without checkpoints
// makes no safe progress.
#ifndef TROUPE_COORDINATOR_JOB_FAILED_WRITES_H_
#define TROUPE_COORDINATOR_JOB_FAILED_WRITES_H_

#include "coordinator/state/transition.h"
#include "coordinator/state/turn.h"

namespace troupe {

// Handles a rank's report that a write failed; the attempt is aborted. A full folder is the fault
// of no host. Any other failure is recorded, once, against the host that the message blames. If the
// worker failed for the third time since the newest commit and the job has room on other hosts that
// are not set aside, the group ends and restarts there from the newest commit. This happens once
// between two commits: if the next host cannot write either, the cause is not the host. It never
// happens to a job that would be restored from images, which bind its ranks to their workers, nor
// to one whose ranks have stopped and hold the only copy of the state, nor to one that ends.
// REQUIRES: the job has a group.
[[nodiscard]] Transition OnFailedWrite(Job& job, const v1::ShardFailed& message, Turn& turn);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_JOB_FAILED_WRITES_H_
