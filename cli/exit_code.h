// The exit codes of the `troupe` command; scripts rely on them.
#ifndef TROUPE_CLI_EXIT_CODE_H_
#define TROUPE_CLI_EXIT_CODE_H_

#include "base/status.h"

namespace troupe {

enum class ExitCode : int {
  kDone = 0,
  kFailed = 1,       // the job or check failed
  kUsage = 2,        // usage or bad input
  kUnreachable = 3,  // no coordinator
  kNotFound = 4,
  kInterrupted = 130,
};

// Returns the exit code of a command that ends with `status`.
ExitCode ExitCodeOf(const Status& status);

}  // namespace troupe

#endif  // TROUPE_CLI_EXIT_CODE_H_
