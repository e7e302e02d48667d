// The exit codes of the `troupe` command; scripts rely on them.
#ifndef TROUPE_CLI_EXIT_CODE_H_
#define TROUPE_CLI_EXIT_CODE_H_

#include <utility>

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

// The meanings of the exit codes, for help texts.
inline constexpr std::pair<ExitCode, const char*> kExitCodeMeanings[] = {
    {ExitCode::kDone, "done"},
    {ExitCode::kFailed, "the job or check failed, it cannot be done now, or its output is lost"},
    {ExitCode::kUsage, "usage or bad input, also a file that is missing or cannot be used"},
    {ExitCode::kUnreachable, "no coordinator, or it accepts neither certificate nor token"},
    {ExitCode::kNotFound, "there is no such job, worker or checkpoint"},
    {ExitCode::kInterrupted, "interrupted"}};

// Marks an error as one of the coordinator: it is not reached, or it has refused the call. Without
// the mark, an error that something is unavailable or not found is about this machine's files.
Status OfCoordinator(Status status);

// Returns the exit code of a command that ends with `status`.
ExitCode ExitCodeOf(const Status& status);

}  // namespace troupe

#endif  // TROUPE_CLI_EXIT_CODE_H_
