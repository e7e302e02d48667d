// A job as the API shows it. Pure.
#ifndef TROUPE_COORDINATOR_JOB_JOB_VIEW_H_
#define TROUPE_COORDINATOR_JOB_JOB_VIEW_H_

#include <vector>

#include "coordinator/state/job_state.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

// The job as the API shows it. `full`: with spec and plan.
v1::Job DescribeJob(const Job& job, bool full);

// Committed and quarantined checkpoints, newest last.
std::vector<v1::CheckpointRecord> ListedCheckpoints(const Job& job);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_JOB_JOB_VIEW_H_
