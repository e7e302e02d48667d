// Checks whether a job is possible: each key by itself and every relation between keys. Pure.
#ifndef TROUPE_PLAN_VALIDATE_VALIDATE_H_
#define TROUPE_PLAN_VALIDATE_VALIDATE_H_

#include "base/status.h"
#include "plan/job/validate_keys.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// Checks `spec` and reports every violation, not only the first: INVALID_ARGUMENT naming field,
// value and relation, or the feature that this build lacks. REQUIRES: ApplyDefaults(spec) has been
// called.
Status ValidateJobSpec(const v1::JobSpec& spec, JobPurpose purpose);

}  // namespace troupe

#endif  // TROUPE_PLAN_VALIDATE_VALIDATE_H_
