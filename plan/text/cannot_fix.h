// Describes, for each axis of a job's mesh, the memory that the axis replicates instead of
// sharding, its size, and the setting that would shard it. Pure.
#ifndef TROUPE_PLAN_TEXT_CANNOT_FIX_H_
#define TROUPE_PLAN_TEXT_CANNOT_FIX_H_

#include <string>
#include <vector>

#include "plan/validate/decoded_job.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// One line for each axis. REQUIRES: `plan` is a plan of `job` and has its replication.
std::vector<std::string> CannotFixLines(const DecodedJob& job, const v1::Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PLAN_TEXT_CANNOT_FIX_H_
