// Warnings about keys of a job that do not do what they say. Pure.
#ifndef TROUPE_PLAN_KEY_WARNINGS_H_
#define TROUPE_PLAN_KEY_WARNINGS_H_

#include <string>
#include <vector>

#include "troupe/v1/job.pb.h"

namespace troupe {

// The newest commits that are kept whatever checkpoint.keep_latest_k says; checkpoint/retention.h has
// the same number.
inline constexpr int kKeptCommitsMin = 2;

// "KEY = VALUE has no effect: WHY" for each stated key that has none (plan/key_effects.h), and for
// values below a limit that holds whatever they say. REQUIRES: `spec` has its defaults.
std::vector<std::string> KeyWarnings(const v1::JobSpec& spec);

}  // namespace troupe

#endif  // TROUPE_PLAN_KEY_WARNINGS_H_
