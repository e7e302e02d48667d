// The line that states how far a job is. Pure.
#ifndef TROUPE_CLI_OUTPUT_STATE_LINE_H_
#define TROUPE_CLI_OUTPUT_STATE_LINE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "cli/output/colour.h"

namespace troupe {

struct JobProgress {
  std::string name;   // shown as PrintableLine does
  std::string state;  // "RUNNING"
  Colour colour = Colour::kNone;
  int64_t step = 0;
  int64_t steps = 0;
};

// Returns "jobs/a: RUNNING, step 120 of 200" and a newline. If that is wider than `columns`, the
// name is before the rest on lines of its own.
std::string StateLine(const JobProgress& job, size_t columns);

}  // namespace troupe

#endif  // TROUPE_CLI_OUTPUT_STATE_LINE_H_
