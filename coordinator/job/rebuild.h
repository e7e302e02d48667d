// Rebuilds a job that the catalog has lost from the records in its checkpoints. Pure.
#ifndef TROUPE_COORDINATOR_JOB_REBUILD_H_
#define TROUPE_COORDINATOR_JOB_REBUILD_H_

#include <cstdint>
#include <map>
#include <string>

#include "base/status.h"
#include "coordinator/state/job_state.h"
#include "coordinator/state/turn.h"

namespace troupe {

// Creates a CANCELLED job with the checkpoints of the request and records it in the turn's writes:
// it is listed and can be resumed. Its group epoch and attempts continue after the highest that
// were found. Events, history and the devices it ran on are lost. No checkpoint counts as verified,
// whatever the request states: a worker has to read it back first.
//
// INVALID_ARGUMENT names the field of an untrainable spec, of a checkpoint.folder in which the
// job's directory is used by one of `jobs`, of a number of checkpoints that is 0 or too large, or
// of an invalid record: a record of another job, a repeated attempt, an attempt or step below 1, a
// path that is not that of the attempt's directory in the job's own directory, a state other than
// COMMITTED and QUARANTINED, or a digest that is not a SHA-256.
StatusOr<Job> RebuildJob(const RebuildJobCall& call, uint64_t sequence,
                         const std::map<std::string, Job>& jobs, Turn& turn);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_JOB_REBUILD_H_
