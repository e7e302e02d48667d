// The relations of a job's pipeline: stages, chunks, schedule, split points, and the microbatches of a step. Pure.
#ifndef TROUPE_PLAN_VALIDATE_PIPELINE_H_
#define TROUPE_PLAN_VALIDATE_PIPELINE_H_

#include "plan/violation.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// Adds every relation that fails. Of numbers that are refused by their own names (degrees, batch sizes, a pattern that
// does not parse) nothing further is said. REQUIRES: the spec's defaults are filled in.
void ValidatePipeline(const v1::JobSpec& spec, Violations* violations);

}  // namespace troupe

#endif  // TROUPE_PLAN_VALIDATE_PIPELINE_H_
