#include "cli/exit_code.h"

namespace troupe {

ExitCode ExitCodeOf(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return ExitCode::kDone;
    case StatusCode::kInvalidArgument:
    case StatusCode::kOutOfRange:
    case StatusCode::kAlreadyExists:
      return ExitCode::kUsage;
    case StatusCode::kUnavailable:
      return ExitCode::kUnreachable;
    case StatusCode::kNotFound:
      return ExitCode::kNotFound;
    default:
      return ExitCode::kFailed;
  }
}

}  // namespace troupe
