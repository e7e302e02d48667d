// Checks the relations between the degrees of the axes and the model's heads, widths, vocabulary,
// tokens and experts. Pure.
#ifndef TROUPE_PLAN_VALIDATE_VALIDATE_AXES_H_
#define TROUPE_PLAN_VALIDATE_VALIDATE_AXES_H_

#include "plan/job/job_choices.h"
#include "plan/job/violation.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// Adds a violation for every relation that fails; none where a degree of these axes is refused by
// itself. `choices` are those of `spec`. REQUIRES: the spec's defaults are filled in; ValidateKeys
// has been called.
void ValidateAxes(const v1::JobSpec& spec, const JobChoices& choices, Violations* violations);

}  // namespace troupe

#endif  // TROUPE_PLAN_VALIDATE_VALIDATE_AXES_H_
