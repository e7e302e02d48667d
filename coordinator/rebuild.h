// A job that the catalog has lost, known again by what its checkpoints say of it. Pure.
#ifndef TROUPE_COORDINATOR_REBUILD_H_
#define TROUPE_COORDINATOR_REBUILD_H_

#include <cstdint>

#include "base/status.h"
#include "coordinator/job.h"

namespace troupe {

// A CANCELLED job with the checkpoints of the request, recorded in the turn's writes: it is listed
// and can be resumed. Its group epoch and attempts go on behind the highest that were found. Events,
// history and the devices it ran on are lost. INVALID_ARGUMENT naming the field for a spec that
// cannot be trained or a record that cannot be: of another job, twice one attempt, no absolute path,
// neither COMMITTED nor QUARANTINED, without the digest of its manifest.
StatusOr<Job> RebuildJob(const RebuildJobCall& call, uint64_t sequence, Turn& turn);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_REBUILD_H_
