#include "worker/executor/folder_fault.h"

#include "base/failure_cause.h"

namespace troupe {

Status FolderFault(const Status& status, std::string_view what) {
  if (!AttachedCause(status).empty()) return OkStatus();
  switch (status.code()) {
    case StatusCode::kNotFound:
    case StatusCode::kPermissionDenied:
      return WithCause(FailedPrecondition("{} cannot be read: {}", what, Message(status)),
                       cause::kStorage);
    case StatusCode::kUnavailable:
      return WithCause(Annotate(status, fmt::format("{} cannot be read", what)), cause::kStorage);
    default:
      return OkStatus();
  }
}

bool FolderIsAway(FileSystem& files, const std::string& folder) {
  const auto entries = files.List(folder);
  return !entries.ok() || entries->empty();
}

Status FaultOfKey(FileSystem& files, std::string_view key, const std::string& folder,
                  const Status& status) {
  const bool lacks_file = status.code() == StatusCode::kNotFound && !FolderIsAway(files, folder);
  const Status away = lacks_file ? OkStatus() : FolderFault(status, key);
  return away.ok() ? Annotate(status, key) : away;
}

}  // namespace troupe
