// The text of `troupe list`. Pure.
#ifndef TROUPE_CLI_OUTPUT_JOB_TABLE_H_
#define TROUPE_CLI_OUTPUT_JOB_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "troupe/v1/service.pb.h"

namespace troupe {

struct ListedJob {
  v1::Job job;
  std::optional<double> loss;  // that of its last step, if it is known
};

// Returns the indices of `jobs`, which are in the order of their creation, those first of which a
// person most wants to know the loss: RUNNING jobs, then others that have not ended, then those
// that have; among each, the newest first.
std::vector<size_t> OrderOfInterest(const std::vector<ListedJob>& jobs);

// Returns a table with a line for each job: name, state, steps, loss, age, and why it waits, moves
// or has failed. `now_ns`: in nanoseconds since the Unix epoch.
std::string JobTableText(const std::vector<ListedJob>& jobs, int64_t now_ns, bool colours);

}  // namespace troupe

#endif  // TROUPE_CLI_OUTPUT_JOB_TABLE_H_
