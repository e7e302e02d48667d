// The first state of a job, new or found in the catalog. Pure.
#ifndef TROUPE_COORDINATOR_JOB_JOB_CREATION_H_
#define TROUPE_COORDINATOR_JOB_JOB_CREATION_H_

#include <cstdint>
#include <map>

#include "base/time_limits.h"
#include "coordinator/state/job_state.h"
#include "coordinator/state/turn.h"

namespace troupe {

// Creates a QUEUED job and records it in the turn's writes. REQUIRES: `spec` is completed and
// `plan` was made for it.
Job CreateJob(v1::JobSpec spec, v1::Plan plan, uint64_t sequence, Turn& turn);

// Restores the job as a restarted coordinator finds it in the catalog.
Job RecoverJob(const v1::JobRecord& record, const v1::JobSpec& spec, const v1::Plan& plan,
               const v1::GroupRecord& group,
               const std::map<int64_t, v1::CheckpointRecord>& checkpoints, const TimeLimits& limits,
               MonotonicTime now);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_JOB_JOB_CREATION_H_
