#include "kernels/xla/runtime/executable_cache.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>
#include <vector>

#include "base/log.h"
#include "kernels/backend/replace_file.h"
#include "kernels/xla/runtime/executable_entry.h"

namespace troupe::kernels::xla {
namespace {

constexpr std::string_view kSuffix = ".xla";

std::string PathOf(const std::string& folder, const std::string& key) {
  return JoinPath(folder, key + std::string(kSuffix));
}

using FileTime = std::filesystem::file_time_type;

// A file that a process writes takes its entry's name when it is complete. One that is older than
// this was left by a process that was killed.
constexpr auto kLongestWrite = std::chrono::hours(1);

// Whether a file of the folder is an entry, or was to become one.
bool IsOurs(const DirectoryEntry& file) {
  return file.kind == FileKind::kRegular &&
         file.name.find(kSuffix, kEntryKeyBytes) == kEntryKeyBytes;
}

bool IsBeingWritten(const DirectoryEntry& file, FileTime used) {
  return !file.name.ends_with(kSuffix) && FileTime::clock::now() - used < kLongestWrite;
}

// The last words of an error of the operating system: "No space left on device".
std::string_view CauseOf(std::string_view message) {
  const size_t colon = message.rfind(": ");
  return colon == std::string_view::npos ? message : message.substr(colon + 2);
}

}  // namespace

std::optional<std::string> ExecutableCache::Find(const std::string& key) {
  const std::string path = PathOf(folder_, key);
  StatusOr<std::string> file =
      ReadFile(files_, path, std::numeric_limits<int64_t>::max(), SymbolicLinks::kRefuse);
  if (file.status().code() == StatusCode::kNotFound) return std::nullopt;
  if (!file.ok()) {
    const std::string_view message = Message(file.status());
    NoteFault(fmt::format("an entry cannot be read: {}", CauseOf(message)), message);
    return std::nullopt;
  }
  const StatusOr<std::string_view> plugin_bytes = DecodeEntry(key, *file);
  if (!plugin_bytes.ok()) {
    NoteFault(fmt::format("an entry {}", Message(plugin_bytes.status())), path);
    return std::nullopt;
  }
  // An entry in use is not removed. In a folder that only others may write the times stay.
  std::error_code error;
  std::filesystem::last_write_time(path, FileTime::clock::now(), error);
  file->erase(0, kEntryHeaderBytes);
  return *std::move(file);
}

void ExecutableCache::Add(const std::string& key, std::string_view plugin_bytes) {
  const int64_t bytes = std::ssize(plugin_bytes) + static_cast<int64_t>(kEntryHeaderBytes);
  if (bytes > most_bytes_) {
    NoteFault("a program is larger than the folder may be",
              fmt::format("{} bytes of {}", bytes, most_bytes_));
    return;
  }
  if (const Status written = Write(key, plugin_bytes); !written.ok()) {
    const std::string_view message = Message(written);
    NoteFault(fmt::format("an entry cannot be written: {}", CauseOf(message)), message);
    return;
  }
  RemoveOldest();
}

Status ExecutableCache::Write(const std::string& key, std::string_view plugin_bytes) {
  TROUPE_RETURN_IF_ERROR(MakeDirectories(files_, folder_));
  return ReplaceFile(files_, PathOf(folder_, key), EncodeEntry(key, plugin_bytes));
}

void ExecutableCache::RemoveOldest() {
  const StatusOr<std::vector<DirectoryEntry>> listed = files_.List(folder_);
  if (!listed.ok()) {
    NoteFault(fmt::format("the folder cannot be listed: {}", CauseOf(Message(listed.status()))),
              Message(listed.status()));
    return;
  }
  struct Entry {
    FileTime used;
    std::string path;
    int64_t bytes;
  };
  std::vector<Entry> entries;
  int64_t sum = 0;
  for (const DirectoryEntry& file : *listed) {
    if (!IsOurs(file)) continue;
    const std::string path = JoinPath(folder_, file.name);
    const StatusOr<FileInfo> info = files_.Stat(path, SymbolicLinks::kRefuse);
    if (!info.ok()) continue;  // another process has removed it
    std::error_code error;
    const FileTime used = std::filesystem::last_write_time(path, error);
    if (IsBeingWritten(file, used)) continue;
    entries.push_back({used, path, info->size_bytes});
    sum += info->size_bytes;
  }
  std::ranges::sort(entries, {}, &Entry::used);
  for (const Entry& entry : entries) {
    if (sum <= most_bytes_) return;
    if (const Status removed = files_.Remove(entry.path);
        !removed.ok() && removed.code() != StatusCode::kNotFound) {
      NoteFault(fmt::format("an old entry cannot be removed: {}", CauseOf(Message(removed))),
                Message(removed));
      continue;
    }
    sum -= entry.bytes;
  }
}

void ExecutableCache::NoteFault(const std::string& reason, std::string_view detail) {
  int64_t count = 0;
  {
    const std::lock_guard lock(mutex_);
    count = ++faults_[reason];
  }
  if (count == 1) LogWarning("xla", "executable cache {}: {} ({})", folder_, reason, detail);
}

std::map<std::string, int64_t> ExecutableCache::faults() const {
  const std::lock_guard lock(mutex_);
  return faults_;
}

}  // namespace troupe::kernels::xla
