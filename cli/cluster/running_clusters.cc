#include "cli/cluster/running_clusters.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/text_file.h"
#include "cli/cluster/absolute_path.h"
#include "cli/cluster/cluster_file.h"
#include "cli/cluster/process.h"
#include "cli/cluster/process_folder.h"
#include "cli/cluster/supervisor_lock.h"

namespace troupe {
namespace {

bool IsOfThisUser(const std::string& process_folder) {
  struct stat status;
  return stat(process_folder.c_str(), &status) == 0 && status.st_uid == geteuid();
}

// Returns the absolute path of a folder that a process names, which may be relative to its working
// directory.
std::string AbsoluteFolderOf(const std::string& process_folder, const std::string& folder) {
  std::error_code error;
  const auto directory = std::filesystem::read_symlink(process_folder + "/cwd", error);
  return NormalPath(directory / folder);
}

// Another coordinator may have a data directory of that name too.
bool IsCoordinatorOf(const std::string& folder, const ProcessId& process) {
  const auto cluster = ReadClusterFile(folder);
  return cluster.ok() && cluster->coordinator == process;
}

}  // namespace

std::vector<std::string> RunningClusters() {
  // Start of a process in ticks since boot, and folder of its cluster.
  std::vector<std::pair<uint64_t, std::string>> found, coordinators;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    pid_t pid = 0;
    const auto [last, no_number] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (no_number != std::errc() || last != name.data() + name.size()) continue;
    const std::string process_folder = entry->path();
    if (!IsOfThisUser(process_folder)) continue;
    // The process may end at any time.
    const StatusOr<std::string> command_line = ReadTextFile(process_folder + "/cmdline");
    if (!command_line.ok()) continue;
    const std::optional<ProcessId> process = FindProcess(pid);
    if (!process) continue;
    if (const auto supervised = SupervisedFolder(*command_line)) {
      std::string folder = AbsoluteFolderOf(process_folder, *supervised);
      if (IsSupervisorOf(folder, *process))
        found.emplace_back(process->start_ticks, std::move(folder));
    } else if (const auto coordinated = CoordinatedFolder(*command_line)) {
      std::string folder = AbsoluteFolderOf(process_folder, *coordinated);
      if (IsCoordinatorOf(folder, *process))
        coordinators.emplace_back(process->start_ticks, std::move(folder));
    }
  }
  // A cluster is as new as its supervisor: a coordinator that was started again does not count.
  for (auto& coordinator : coordinators) {
    const bool is_supervised = std::ranges::any_of(
        found, [&](const auto& other) { return other.second == coordinator.second; });
    if (!is_supervised) found.push_back(std::move(coordinator));
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> folders;
  for (auto& [start_ticks, folder] : found) {
    if (std::find(folders.begin(), folders.end(), folder) == folders.end())
      folders.push_back(std::move(folder));
  }
  return folders;
}

}  // namespace troupe
