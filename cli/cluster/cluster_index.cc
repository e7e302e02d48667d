#include "cli/cluster/cluster_index.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/durable_write.h"
#include "base/flag_parser.h"
#include "cli/cluster/cluster_settings.h"
#include "cli/cluster/folder_lock.h"
#include "cli/cluster/host_id.h"

namespace troupe {
namespace {

constexpr std::chrono::seconds kIndexLimit{5};
constexpr size_t kMostIndexed = 64;
constexpr int64_t kMostIndexBytes = 1 << 20;

std::vector<std::string> LinesOf(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool IsAbsolute(const std::optional<std::string>& path) {
  return path.has_value() && path->starts_with('/');
}

// Returns the text of the index; empty if there is none yet.
StatusOr<std::string> ReadIndex(FileSystem& files, const std::string& state) {
  auto text = ReadFile(files, IndexPath(state), kMostIndexBytes, SymbolicLinks::kRefuse);
  if (text.status().code() == StatusCode::kNotFound) return std::string();
  return text;
}

// Whether it is of this user, and not everybody may write it.
bool IsOwn(const struct stat& status) {
  return status.st_uid == geteuid() && (status.st_mode & S_IWOTH) == 0;
}

// Whoever could write the folder or its settings would decide what `troupe up` starts.
bool HasOwnSettings(const std::string& folder) {
  struct stat directory, settings;
  return stat(folder.c_str(), &directory) == 0 && IsOwn(directory) &&
         lstat(ClusterSettingsPath(folder).c_str(), &settings) == 0 && S_ISREG(settings.st_mode) &&
         IsOwn(settings);
}

}  // namespace

std::string IndexPath(const std::string& state) {
  return JoinPath(state, fmt::format("clusters-{}", ThisHost().name));
}

StatusOr<std::optional<std::string>> StateFolder() {
  TROUPE_ASSIGN_OR_RETURN(const std::optional<std::string> state_home,
                          TextFromEnvironment("XDG_STATE_HOME"));
  TROUPE_ASSIGN_OR_RETURN(const std::optional<std::string> home, TextFromEnvironment("HOME"));
  return StateFolderOf(state_home, home);
}

std::optional<std::string> StateFolderOf(const std::optional<std::string>& xdg_state_home,
                                         const std::optional<std::string>& home) {
  if (IsAbsolute(xdg_state_home)) return JoinPath(*xdg_state_home, "troupe");
  if (IsAbsolute(home)) return JoinPath(*home, ".local/state/troupe");
  return std::nullopt;
}

std::string IndexWith(const std::string& folder, std::string_view index) {
  std::vector<std::string> lines = LinesOf(index);
  std::erase(lines, folder);
  lines.insert(lines.begin(), folder);
  if (lines.size() > kMostIndexed) lines.resize(kMostIndexed);
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

Status AddToIndex(FileSystem& files, const std::string& state, const std::string& folder) {
  TROUPE_RETURN_IF_ERROR(MakeDirectories(files, state));
  TROUPE_ASSIGN_OR_RETURN(const FolderLock lock, FolderLock::Acquire(state, kIndexLimit));
  TROUPE_ASSIGN_OR_RETURN(const std::string index, ReadIndex(files, state));
  return WriteFileDurably(files, IndexPath(state), AsBytes(IndexWith(folder, index)));
}

StatusOr<std::string> NewestFolder(FileSystem& files, const std::string& state) {
  TROUPE_ASSIGN_OR_RETURN(const std::string index, ReadIndex(files, state));
  for (const std::string& folder : LinesOf(index)) {
    if (!folder.starts_with('/') || !CheckText("line", folder).ok()) {
      return InvalidArgument(
          "{} has the line \"{}\", which is not an absolute path: remove the "
          "file, or give --data-dir DIR",
          IndexPath(state), folder);
    }
    if (HasOwnSettings(folder)) return folder;
  }
  return JoinPath(state, "default");
}

}  // namespace troupe
