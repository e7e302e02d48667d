// Applies the key parallelism.reshard_after_forward (plan/job/reshard_mode.h) to a layout. Pure.
#ifndef TROUPE_PLAN_VALIDATE_RESHARD_H_
#define TROUPE_PLAN_VALIDATE_RESHARD_H_

#include "plan/job/violation.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// Adds the violations of the key. Its run length is compared with data_parallel_shard_degree only
// where zero_stage is 3 and that degree is at least 1.
void ValidateReshard(const v1::ParallelismSpec& parallelism, Violations* violations);

// Adapts the key to a layout whose data_parallel_shard_degree replaces that of `before`: keeps it
// where the new degree is still cut into several runs of this length, else sets true, so that
// parameters are gathered over all of the fewer ranks.
void KeepReshard(const v1::ParallelismSpec& before, v1::ParallelismSpec* parallelism);

}  // namespace troupe

#endif  // TROUPE_PLAN_VALIDATE_RESHARD_H_
