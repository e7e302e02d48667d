// Warnings about keys of a job that do not have the stated effect. Pure.
#ifndef TROUPE_PLAN_JOB_KEY_WARNINGS_H_
#define TROUPE_PLAN_JOB_KEY_WARNINGS_H_

#include <string>
#include <vector>

#include "troupe/v1/job.pb.h"

namespace troupe {

// This many of the newest commits are kept whatever checkpoint.keep_latest_k is;
// checkpoint/read/retention.h has the same number.
inline constexpr int kKeptCommitsMin = 2;

// Returns "KEY = VALUE has no effect: WHY" for each stated key without effect
// (plan/job/key_effects.h), and a line for each value below a limit that the product enforces
// anyway. REQUIRES: `spec` has its defaults.
std::vector<std::string> KeyWarnings(const v1::JobSpec& spec);

}  // namespace troupe

#endif  // TROUPE_PLAN_JOB_KEY_WARNINGS_H_
