#include "base/status.h"

#include <cerrno>
#include <cstring>

namespace troupe {

std::string ToString(const Status& status) {
  if (status.ok()) return "OK";
  return fmt::format("{}: {}", absl::StatusCodeToString(status.code()), Message(status));
}

Status Annotate(const Status& status, std::string_view prefix) {
  if (status.ok()) return status;
  Status annotated = MakeStatus(status.code(), fmt::format("{}: {}", prefix, Message(status)));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    annotated.SetPayload(url, payload);
  });
  return annotated;
}

Status ErrnoStatus(int error_number, std::string_view what) {
  StatusCode code = StatusCode::kUnavailable;
  switch (error_number) {
    case ENOENT:
      code = StatusCode::kNotFound;
      break;
    case EEXIST:
      code = StatusCode::kAlreadyExists;
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      code = StatusCode::kPermissionDenied;
      break;
    case ENOSPC:
    case EDQUOT:
      code = StatusCode::kResourceExhausted;
      break;
    default:
      break;
  }
  char text[128];
  return MakeStatus(code, fmt::format("{}: {}", what, strerror_r(error_number, text, sizeof text)));
}

}  // namespace troupe
