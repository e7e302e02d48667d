// The figures of a plan that follow from the programs of its stages. Pure.
#ifndef TROUPE_PLAN_PLAN_COSTS_H_
#define TROUPE_PLAN_PLAN_COSTS_H_

#include "base/status.h"
#include "plan/validate/decoded_job.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// Sets the memory of each pipe rank, the sample channels that the ranks read, the state that each
// axis replicates, and for each axis and purpose the largest traffic of any rank. INVALID_ARGUMENT
// where a stage cannot be built. REQUIRES: `plan` is a plan of `job`, with mesh, chunks, buckets
// and schedule.
Status SetCosts(const DecodedJob& job, v1::Plan* plan);

}  // namespace troupe

#endif  // TROUPE_PLAN_PLAN_COSTS_H_
