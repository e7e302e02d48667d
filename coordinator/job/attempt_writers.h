// Derives from the ranks' reports which checkpoint attempts they may still be writing. All
// functions are pure.
#ifndef TROUPE_COORDINATOR_JOB_ATTEMPT_WRITERS_H_
#define TROUPE_COORDINATOR_JOB_ATTEMPT_WRITERS_H_

#include "base/clock.h"
#include "coordinator/state/fleet.h"
#include "coordinator/state/job_state.h"

namespace troupe {

// Returns whether a rank of the attempt's group epoch may still write into its directory.
bool MayBeWritten(const Job& job, const v1::CheckpointRecord& record, const Fleet& fleet);

// Returns the time by which the next step may take longer because a rank still writes its part of
// an attempt that another rank's failure aborted; zero if there is none. REQUIRES: the job has a
// group.
Duration WritingAllowance(const Job& job);

// Returns whether checkpoint attempts in progress may block ranks: between two steps, after the
// last step, or, if checkpoints are written in the background, because one waits for another.
bool HoldsUpRanks(const Job& job);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_JOB_ATTEMPT_WRITERS_H_
