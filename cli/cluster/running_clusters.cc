#include "cli/cluster/running_clusters.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "base/failpoint.h"
#include "base/text_file.h"
#include "cli/cluster/cluster_file.h"
#include "cli/cluster/process.h"

namespace troupe {
namespace {

bool IsOfThisUser(const std::string& process_folder) {
  struct stat status;
  return stat(process_folder.c_str(), &status) == 0 && status.st_uid == geteuid();
}

std::vector<std::string_view> ArgumentsOf(std::string_view command_line) {
  std::vector<std::string_view> arguments;
  for (size_t end; (end = command_line.find('\0')) != std::string_view::npos;) {
    arguments.push_back(command_line.substr(0, end));
    command_line.remove_prefix(end + 1);
  }
  return arguments;
}

std::string_view BinaryOf(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Another coordinator may have a data directory of that name too.
bool IsCoordinatorOf(const std::string& folder, const ProcessId& process) {
  const auto cluster = ReadClusterFile(folder);
  return cluster.ok() && cluster->coordinator == process;
}

}  // namespace

std::optional<std::string> SupervisedFolder(std::string_view command_line) {
  const std::vector<std::string_view> arguments = ArgumentsOf(command_line);
  const bool complete =
      arguments.size() == 4 || (arguments.size() == 5 && arguments[4] == kAllowFailpointsFlag);
  if (!complete || BinaryOf(arguments[0]) != "troupe" || arguments[1] != "supervise" ||
      arguments[2] != "--data-dir") {
    return std::nullopt;
  }
  return std::string(arguments[3]);
}

std::optional<std::string> CoordinatedFolder(std::string_view command_line) {
  constexpr std::string_view kFolder = "/coordinator";
  const std::vector<std::string_view> arguments = ArgumentsOf(command_line);
  if (arguments.empty() || BinaryOf(arguments[0]) != "troupe-coordinator") return std::nullopt;
  const auto flag = std::find(arguments.begin(), arguments.end(), "--data-dir");
  if (flag == arguments.end() || flag + 1 == arguments.end()) return std::nullopt;
  std::string_view folder = *(flag + 1);
  if (!folder.ends_with(kFolder)) return std::nullopt;
  folder.remove_suffix(kFolder.size());
  return std::string(folder);
}

std::vector<std::string> RunningClusters() {
  std::vector<std::pair<uint64_t, std::string>> found;  // start in ticks since boot, folder
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
      found.emplace_back(process->start_ticks, *supervised);
    } else if (const auto folder = CoordinatedFolder(*command_line);
               folder && IsCoordinatorOf(*folder, *process)) {
      found.emplace_back(process->start_ticks, *folder);
    }
  }
  std::sort(found.rbegin(), found.rend());
  // A cluster is as new as its newest process.
  std::vector<std::string> folders;
  for (auto& [start_ticks, folder] : found) {
    if (std::find(folders.begin(), folders.end(), folder) == folders.end())
      folders.push_back(std::move(folder));
  }
  return folders;
}

}  // namespace troupe
