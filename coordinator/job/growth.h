// Grows a job that runs with fewer ranks back to its submitted layout. Once enough devices have
// been available without interruption for growth_patience (base/time_limits.h), its ranks commit a
// checkpoint after one of their next steps and stop there, and the job is placed again. No step is
// repeated or lost. A job without a checkpoint.folder cannot save that step and grows only with its
// next recovery.
#ifndef TROUPE_COORDINATOR_JOB_GROWTH_H_
#define TROUPE_COORDINATOR_JOB_GROWTH_H_

#include <cstdint>

#include "coordinator/state/job_state.h"
#include "coordinator/state/turn.h"

namespace troupe {

// Checks whether the job's own devices and the free ones can hold its submitted layout, and sets or
// clears job.grow_time accordingly. Call whenever the fleet or the queue has changed. `outranked`:
// a job with precedence over this one waits for devices. `devices_left`: the devices that the job
// may use by the quota of its namespace.
void ConsiderGrowth(Job& job, bool outranked, int64_t devices_left, Turn& turn);

// Requests the checkpoint after which the ranks stop, unless the job may no longer grow. Call when
// job.grow_time has come.
void BeginGrowth(Job& job, Turn& turn);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_JOB_GROWTH_H_
