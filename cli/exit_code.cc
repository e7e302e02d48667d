#include "cli/exit_code.h"

namespace troupe {

namespace {

constexpr char kMark[] = "troupe/coordinator";  // the URL of an empty payload

}  // namespace

Status OfCoordinator(Status status) {
  status.SetPayload(kMark, absl::Cord());
  return status;
}

ExitCode ExitCodeOf(const Status& status) {
  const bool of_coordinator = status.GetPayload(kMark).has_value();
  switch (status.code()) {
    case StatusCode::kOk:
      return ExitCode::kDone;
    case StatusCode::kInvalidArgument:
    case StatusCode::kOutOfRange:
    case StatusCode::kAlreadyExists:
      return ExitCode::kUsage;
    case StatusCode::kUnavailable:
    case StatusCode::kUnauthenticated:
      return of_coordinator ? ExitCode::kUnreachable : ExitCode::kUsage;
    case StatusCode::kNotFound:
      return of_coordinator ? ExitCode::kNotFound : ExitCode::kUsage;
    case StatusCode::kPermissionDenied:
      return of_coordinator ? ExitCode::kFailed : ExitCode::kUsage;
    default:
      return ExitCode::kFailed;
  }
}

}  // namespace troupe
