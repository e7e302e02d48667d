// A job that goes on with fewer ranks grows back to its submitted layout: once devices enough for
// it have been there for growth_patience (base/time_limits.h) without a break, its ranks commit a
// checkpoint after one of their next steps and stop there, and it is placed anew. No step is
// repeated, none is lost. A job without a checkpoint.folder could not save that step: it grows with
// its next recovery alone.
#ifndef TROUPE_COORDINATOR_GROWTH_H_
#define TROUPE_COORDINATOR_GROWTH_H_

#include <cstdint>

#include "coordinator/job.h"
#include "coordinator/turn.h"

namespace troupe {

// Looks whether the job's own devices and the free ones hold its submitted layout, and sets or
// clears job.grow_time accordingly. To be called whenever the fleet or the queue has changed.
// `outranked`: a job that comes before this one waits for devices.
void ConsiderGrowth(Job& job, bool outranked, Turn& turn);

// Asks the ranks for the checkpoint after which they stop, if job.grow_time has come.
void BeginGrowthIfDue(Job& job, Turn& turn);

// The checkpoint of `step` is committed: ends the group and queues the job, which then is
// RECOVERING but counts no restart. REQUIRES: job.record.grows() and a running group.
void EndForGrowth(Job& job, int64_t step, Turn& turn);

// The checkpoint could not be written, but the ranks' images are: the job does not grow and goes on
// from them. REQUIRES: as above, and GoesOnFromImages.
void GoOnFromImages(Job& job, Turn& turn);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_GROWTH_H_
