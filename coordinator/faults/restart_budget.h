// The number of recoveries that a job may still spend on its own faults
// (fault_tolerance.max_restarts). Pure.
//
// The job's record counts two series, and a step beyond the highest one reached resets both:
// barren_restarts counts faults that are the job's in any case; repeated_faults counts faults that
// recur at the same step and are charged to the job only then.
#ifndef TROUPE_COORDINATOR_FAULTS_RESTART_BUDGET_H_
#define TROUPE_COORDINATOR_FAULTS_RESTART_BUDGET_H_

#include <cstdint>

#include "coordinator/faults/culprit.h"
#include "troupe/v1/catalog.pb.h"

namespace troupe {

// Counts a fault that happened after `step`, or while the ranks started from it. Returns the number
// of recoveries spent, including the one for this fault; 0: it is not charged.
int64_t ChargeFault(Charged charged, int64_t step, v1::JobRecord* record);

// Resets both series: a step beyond the highest one was reached, or the job is resumed.
void RenewBudget(v1::JobRecord* record);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_FAULTS_RESTART_BUDGET_H_
