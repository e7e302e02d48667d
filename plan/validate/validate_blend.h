// Checks data.blend: its weights are valid for data/blend.h, and no dataset occurs twice.
#ifndef TROUPE_PLAN_VALIDATE_VALIDATE_BLEND_H_
#define TROUPE_PLAN_VALIDATE_VALIDATE_BLEND_H_

#include "plan/job/violation.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// Adds a violation for each relation that fails, except of weights that `violations` has already.
// REQUIRES: `data` has a blend, with its defaults; ValidateKeys has been called.
void ValidateBlend(const v1::DataSpec& data, Violations* violations);

}  // namespace troupe

#endif  // TROUPE_PLAN_VALIDATE_VALIDATE_BLEND_H_
