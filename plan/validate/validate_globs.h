// Checks the lists of globs over the names of the model's tensors: optimizer.no_weight_decay and
// model.trainable.
#ifndef TROUPE_PLAN_VALIDATE_VALIDATE_GLOBS_H_
#define TROUPE_PLAN_VALIDATE_VALIDATE_GLOBS_H_

#include "plan/job/violation.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// Adds a violation for each glob that matches no tensor of the model, for an empty one in a list of
// no_weight_decay with other globs, for globs that train a part of a matrix, and for frozen
// parameters whose values nothing gives. REQUIRES: the job's model is otherwise valid.
void ValidateGlobs(const v1::JobSpec& spec, Violations* violations);

}  // namespace troupe

#endif  // TROUPE_PLAN_VALIDATE_VALIDATE_GLOBS_H_
