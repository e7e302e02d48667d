// What parallelism.reshard_after_forward asks for: true, false, or a number of neighbours on the
// data_shard axis. Pure.
#ifndef TROUPE_PLAN_RESHARD_H_
#define TROUPE_PLAN_RESHARD_H_

#include "plan/violation.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// The number of neighbours that parameters are gathered over in forward and backward; 0 where it
// says true or false, or nothing that is valid.
int ShardRun(const v1::ParallelismSpec& parallelism);

// Adds what fails of it. Beside a data_parallel_shard_degree below 1, or stages that do not shard,
// no more than that.
void ValidateReshard(const v1::ParallelismSpec& parallelism, Violations* violations);

// For a layout with `parallelism`'s data_parallel_shard_degree in place of that of `before`: as it
// was where the degree is still cut into several such runs, else true: the blocks of all ranks,
// which are fewer now, are gathered.
void KeepReshard(const v1::ParallelismSpec& before, v1::ParallelismSpec* parallelism);

}  // namespace troupe

#endif  // TROUPE_PLAN_RESHARD_H_
