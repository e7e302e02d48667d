// The conditions under which a job measures. Pure.
#ifndef TROUPE_COORDINATOR_HISTORY_RECEIPT_CONDITIONS_H_
#define TROUPE_COORDINATOR_HISTORY_RECEIPT_CONDITIONS_H_

#include "coordinator/state/job_state.h"
#include "troupe/v1/receipt.pb.h"

namespace troupe {

// The receipt's fields that follow from the job, the plan and the ranks' environments, without step
// figures.
v1::Receipt ConditionsOf(const Job& job);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_HISTORY_RECEIPT_CONDITIONS_H_
