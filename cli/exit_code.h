// The exit codes of the `troupe` command; scripts rely on them.
#ifndef TROUPE_CLI_EXIT_CODE_H_
#define TROUPE_CLI_EXIT_CODE_H_

#include "base/status.h"

namespace troupe {

enum class ExitCode : int {
  kDone = 0,
  kFailed = 1,  // the job or check failed, the command cannot be done now, or its output is lost
  kUsage = 2,   // usage or bad input, such as a file or folder that is missing or unusable
  kUnreachable = 3,  // no coordinator, or none that accepts this command's caller
  kNotFound = 4,     // the coordinator knows no such job, checkpoint, …
  kInterrupted = 130,
};

// Marks an error as one of the coordinator: it is not reached, or it has refused the call. Without
// the mark, an error that something is unavailable or not found is about this machine's files.
Status OfCoordinator(Status status);

// Returns the exit code of a command that ends with `status`.
ExitCode ExitCodeOf(const Status& status);

}  // namespace troupe

#endif  // TROUPE_CLI_EXIT_CODE_H_
