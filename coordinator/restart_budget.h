// How many recoveries a job may still spend on faults of its own (fault_tolerance.max_restarts).
// Pure.
//
// Two series are counted in the job's record, and a step beyond the highest one reached ends both:
// barren_restarts of faults that are the job's in any case, and repeated_faults of faults that come
// again at the same step, which only then are the job's.
#ifndef TROUPE_COORDINATOR_RESTART_BUDGET_H_
#define TROUPE_COORDINATOR_RESTART_BUDGET_H_

#include <cstdint>

#include "coordinator/culprit.h"
#include "troupe/v1/catalog.pb.h"

namespace troupe {

// Counts a fault that happened after `step`, or while the ranks started from there. Returns how
// many recoveries the job has spent with the one that this fault asks for; 0: it is not charged.
int64_t ChargeFault(Charged charged, int64_t step, v1::JobRecord* record);

// A step beyond the highest one was reached, or the job is resumed: both series end.
void RenewBudget(v1::JobRecord* record);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_RESTART_BUDGET_H_
