// Checks optimizer.no_weight_decay against the model's tensors.
#ifndef TROUPE_PLAN_VALIDATE_VALIDATE_WEIGHT_DECAY_H_
#define TROUPE_PLAN_VALIDATE_VALIDATE_WEIGHT_DECAY_H_

#include "plan/job/violation.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// Adds a violation for each glob that matches no tensor of the model, or is empty in a list with
// other globs. REQUIRES: the job's model is otherwise valid.
void ValidateWeightDecay(const v1::JobSpec& spec, Violations* violations);

}  // namespace troupe

#endif  // TROUPE_PLAN_VALIDATE_VALIDATE_WEIGHT_DECAY_H_
