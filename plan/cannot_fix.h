// What each axis of a job's mesh leaves whole on its ranks, how much that is, and what would cut
// it. Pure.
#ifndef TROUPE_PLAN_CANNOT_FIX_H_
#define TROUPE_PLAN_CANNOT_FIX_H_

#include <string>
#include <vector>

#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// One line an axis. REQUIRES: `plan` has its replication, of `spec`.
std::vector<std::string> CannotFixLines(const v1::JobSpec& spec, const v1::Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PLAN_CANNOT_FIX_H_
