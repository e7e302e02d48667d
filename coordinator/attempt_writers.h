// What ranks may still be writing of checkpoint attempts, as far as their reports tell. All pure.
#ifndef TROUPE_COORDINATOR_ATTEMPT_WRITERS_H_
#define TROUPE_COORDINATOR_ATTEMPT_WRITERS_H_

#include "base/clock.h"
#include "coordinator/fleet.h"
#include "coordinator/job.h"

namespace troupe {

// Whether a rank of the attempt's epoch may still write into its directory.
bool MayBeWritten(const Job& job, const v1::CheckpointRecord& record, const Fleet& fleet);

// What a rank may still take to write its part of an attempt that another rank's failure has
// aborted: so much longer may be the next step. Zero if there is none. REQUIRES: there is a group.
Duration WritingAllowance(const Job& job);

// Whether ranks may stand still because of attempts that they write: between two steps, after the
// last one, or, where they write beside the steps, because one waits for another.
bool HoldsUpRanks(const Job& job);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_ATTEMPT_WRITERS_H_
