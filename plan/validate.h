// Checks whether a job is possible: every relation between the fields of a JobSpec. Pure.
#ifndef TROUPE_PLAN_VALIDATE_H_
#define TROUPE_PLAN_VALIDATE_H_

#include <string>

#include "base/status.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

enum class JobPurpose {
  kPlan,   // name, data and checkpoint paths may be absent
  kTrain,  // everything that training needs, paths absolute
};

// Checks `spec` and reports every violation, not only the first: INVALID_ARGUMENT naming field,
// value and relation, or the feature that this build lacks. REQUIRES: ApplyDefaults(spec) has been
// called.
Status ValidateJobSpec(const v1::JobSpec& spec, JobPurpose purpose);

}  // namespace troupe

#endif  // TROUPE_PLAN_VALIDATE_H_
