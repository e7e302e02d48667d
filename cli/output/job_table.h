// The text of `troupe list`. Pure.
#ifndef TROUPE_CLI_OUTPUT_JOB_TABLE_H_
#define TROUPE_CLI_OUTPUT_JOB_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/output/text_style.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

// Returns a table with a line for each job: name, state, steps, loss of the last step, age, and why
// it waits, moves or recovers or has failed. Where it is too wide, the reason is below the line,
// and names are shortened; if that is not enough, progress in percent, age and loss are left out,
// in this order. `now_ns`: in nanoseconds since the Unix epoch.
std::string JobTableText(const std::vector<v1::Job>& jobs, int64_t now_ns, const TextStyle& style);

}  // namespace troupe

#endif  // TROUPE_CLI_OUTPUT_JOB_TABLE_H_
