// The first state of a job, new or found in the catalog. Pure.
#ifndef TROUPE_COORDINATOR_JOB_JOB_CREATION_H_
#define TROUPE_COORDINATOR_JOB_JOB_CREATION_H_

#include <cstdint>
#include <map>
#include <string>

#include "base/time_limits.h"
#include "coordinator/state/job_state.h"
#include "coordinator/state/turn.h"

namespace troupe {

// INVALID_ARGUMENT if the job's namespace may never run it: a path is not beneath its root
// (CheckPaths), or a quota is too small (CheckFits).
Status CheckConfined(const CoordinatorOptions& options, const v1::JobSpec& spec,
                     const v1::Plan& plan);

// Creates a QUEUED job and records it in the turn's writes. `creator`: the identity of the caller.
// REQUIRES: `spec` is completed and `plan` was made for it.
Job CreateJob(v1::JobSpec spec, v1::Plan plan, uint64_t sequence, const std::string& creator,
              Turn& turn);

// Restores the job as a restarted coordinator finds it in the catalog.
Job RecoverJob(const v1::JobRecord& record, const v1::JobSpec& spec, const v1::Plan& plan,
               const v1::GroupRecord& group,
               const std::map<int64_t, v1::CheckpointRecord>& checkpoints, const TimeLimits& limits,
               MonotonicTime now);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_JOB_JOB_CREATION_H_
