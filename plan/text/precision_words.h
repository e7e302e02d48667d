// The precision of a job in words, and a plan's warnings about it. Pure.
#ifndef TROUPE_PLAN_TEXT_PRECISION_WORDS_H_
#define TROUPE_PLAN_TEXT_PRECISION_WORDS_H_

#include <string>
#include <vector>

#include "plan/validate/decoded_job.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// A line for each dtype that is stated, is not the default, and has no effect under this layout and
// model.
std::vector<std::string> IdlePrecisionLines(const DecodedJob& job, const v1::Plan& plan);

// The precision that the job asks for, for example "bfloat16, reduce float32". REQUIRES: `spec` has
// its defaults.
std::string IntendedPrecision(const v1::JobSpec& spec);

}  // namespace troupe

#endif  // TROUPE_PLAN_TEXT_PRECISION_WORDS_H_
