// Checks a job's pipeline: stages, chunks, schedule, split points, and the microbatches of a step.
// Pure.
#ifndef TROUPE_PLAN_VALIDATE_VALIDATE_PIPELINE_H_
#define TROUPE_PLAN_VALIDATE_VALIDATE_PIPELINE_H_

#include "plan/job/violation.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// Adds a violation for every relation that fails. Relations that depend on a number which is
// refused under its own name (degrees, batch sizes, a pattern that does not parse) are skipped.
// REQUIRES: the spec's defaults are filled in; ValidateKeys has been called.
void ValidatePipeline(const v1::JobSpec& spec, Violations* violations);

}  // namespace troupe

#endif  // TROUPE_PLAN_VALIDATE_VALIDATE_PIPELINE_H_
