// Checks each job key by itself, by its option `key` (proto/troupe/v1/key.proto). Relations between
// keys are checked by plan/validate/validate.h. Pure.
#ifndef TROUPE_PLAN_JOB_VALIDATE_KEYS_H_
#define TROUPE_PLAN_JOB_VALIDATE_KEYS_H_

#include "plan/job/violation.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

enum class JobPurpose {
  kPlan,   // name, data and checkpoint paths may be absent or relative
  kTrain,  // everything that training needs, paths absolute
};

// Adds a violation for each key below `spec` that is out of its range, is none of its words, is a
// path with a zero byte or (for kTrain) a relative one, belongs to a block that model.pattern
// lacks, or is required and absent. A key with the value of its `default_key` is not refused again.
void ValidateKeys(const v1::JobSpec& spec, JobPurpose purpose, Violations* violations);

}  // namespace troupe

#endif  // TROUPE_PLAN_JOB_VALIDATE_KEYS_H_
