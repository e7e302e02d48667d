// Relations of data.blend: what data/blend.h needs of its weights, and no dataset twice.
#ifndef TROUPE_PLAN_VALIDATE_BLEND_H_
#define TROUPE_PLAN_VALIDATE_BLEND_H_

#include "plan/violation.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// Adds a violation for each relation that fails. REQUIRES: there is a blend, with its defaults.
void ValidateBlend(const v1::DataSpec& data, Violations* violations);

}  // namespace troupe

#endif  // TROUPE_PLAN_VALIDATE_BLEND_H_
