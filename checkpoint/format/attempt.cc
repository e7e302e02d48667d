#include "checkpoint/format/attempt.h"

#include <algorithm>

#include "base/failpoint.h"
#include "checkpoint/format/manifest.h"

namespace troupe {
namespace {

// Removes `prefix` and the digits after it from `text`. Returns false if either is missing.
bool ConsumeNumber(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  text.remove_prefix(digits);
  return digits > 0 && digits <= 20;
}

}  // namespace

std::string AttemptName(int64_t step, uint64_t group_epoch, int64_t attempt, int64_t wall_time_ns) {
  const std::string moment = step > 0 ? fmt::format("step-{:08}", step) : "request";
  return fmt::format("{}-epoch-{}-attempt-{}-at-{}", moment, group_epoch, attempt, wall_time_ns);
}

bool IsAttemptName(std::string_view name) {
  if (name.starts_with("step-")) {
    if (!ConsumeNumber(name, "step-")) return false;
  } else {
    if (!name.starts_with("request")) return false;
    name.remove_prefix(std::string_view("request").size());
  }
  return ConsumeNumber(name, "-epoch-") && ConsumeNumber(name, "-attempt-") &&
         (name.empty() || (ConsumeNumber(name, "-at-") && name.empty()));
}

std::string ShardFileName(int rank) { return fmt::format("rank-{:05}.safetensors", rank); }

Status MakeAttemptDirectory(FileSystem& files, const std::string& path) {
  TROUPE_RETURN_IF_ERROR(MakeDirectories(files, ParentDirectory(path)));
  const Status made = files.MakeDirectory(path);
  if (made.code() == StatusCode::kAlreadyExists) {
    TROUPE_ASSIGN_OR_RETURN(const FileInfo info, files.Stat(path, SymbolicLinks::kRefuse));
    if (info.kind != FileKind::kDirectory) {
      return FailedPrecondition("attempt {}: exists and is not a directory", path);
    }
  } else if (!made.ok()) {
    return made;
  }
  return files.SyncDirectory(ParentDirectory(path));
}

Status DeleteAttempt(FileSystem& files, const std::string& path) {
  TROUPE_RETURN_IF_ERROR(HitFailpoint("checkpoint.delete.begin"));
  const size_t slash = path.rfind('/');
  const std::string_view name = std::string_view(path).substr(slash + 1);
  if (slash == std::string::npos || !IsAttemptName(name)) {
    return FailedPrecondition("delete {}: \"{}\" is not the name of a checkpoint attempt", path,
                              name);
  }
  const auto info = files.Stat(path, SymbolicLinks::kRefuse);
  if (info.status().code() == StatusCode::kNotFound) {
    // The directory's removal may not have been durable when an earlier caller died.
    const Status synced = files.SyncDirectory(ParentDirectory(path));
    return synced.code() == StatusCode::kNotFound ? OkStatus() : synced;
  }
  if (!info.ok()) return info.status();
  if (info->kind != FileKind::kDirectory) {
    return FailedPrecondition("delete {}: is not a directory", path);
  }
  TROUPE_ASSIGN_OR_RETURN(std::vector<DirectoryEntry> entries, files.List(path));
  for (const DirectoryEntry& entry : entries) {
    if (entry.kind != FileKind::kRegular) {
      return FailedPrecondition("delete {}: {} in it is not a regular file", path, entry.name);
    }
  }
  std::stable_partition(entries.begin(), entries.end(), [](const DirectoryEntry& entry) {
    return entry.name == kManifestFileName;
  });
  bool first = true;
  for (const DirectoryEntry& entry : entries) {
    const Status removed = files.Remove(JoinPath(path, entry.name));
    if (!removed.ok() && removed.code() != StatusCode::kNotFound) return removed;
    if (first) {
      TROUPE_RETURN_IF_ERROR(files.SyncDirectory(path));
      TROUPE_RETURN_IF_ERROR(HitFailpoint("checkpoint.delete.unlinked"));
      first = false;
    }
  }
  TROUPE_RETURN_IF_ERROR(files.RemoveDirectory(path));
  return files.SyncDirectory(ParentDirectory(path));
}

}  // namespace troupe
