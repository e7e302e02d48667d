// Decides whether a job may be created or resumed now, by the quotas of its namespace and the limit
// of its user. Pure.
#ifndef TROUPE_COORDINATOR_MACHINE_ADMISSION_H_
#define TROUPE_COORDINATOR_MACHINE_ADMISSION_H_

#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "coordinator/machine/coordinator_state.h"

namespace troupe {

// The checks that need no plan. INVALID_ARGUMENT if the namespace of the job does not exist;
// RESOURCE_EXHAUSTED if it, or `user`, may not have another job now. `user`: an identity; empty:
// not known, so not limited.
Status CheckAdmission(const CoordinatorState& state, const std::string& job_id,
                      const std::string& user, MonotonicTime now);

// Counts a job that was created or resumed.
void CountSubmission(const std::string& job_id, MonotonicTime now, CoordinatorState* state);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_MACHINE_ADMISSION_H_
