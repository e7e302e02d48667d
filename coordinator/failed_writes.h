// A host that cannot write its part of the checkpoints: without them a job only seems to go on.
#ifndef TROUPE_COORDINATOR_FAILED_WRITES_H_
#define TROUPE_COORDINATOR_FAILED_WRITES_H_

#include <string>

#include "coordinator/job.h"
#include "coordinator/turn.h"

namespace troupe {

// `rank` could not write its part of an attempt, which is aborted: lays it to the host, once. Where
// the worker could not for the third time since the newest commit and the job has room on others
// that are not set aside, its group ends, to go on there from the newest commit. That happens once
// between two commits: where the next host cannot write either, it is no host's fault. REQUIRES: a
// group.
void OnFailedWrite(Job& job, int32_t rank, const std::string& reason, Turn& turn);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_FAILED_WRITES_H_
