#include "cli/cluster/running_clusters.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "base/text_file.h"
#include "cli/cluster/process.h"

namespace troupe {
namespace {

bool IsOfThisUser(const std::string& process_folder) {
  struct stat status;
  return stat(process_folder.c_str(), &status) == 0 && status.st_uid == geteuid();
}

}  // namespace

std::optional<std::string> SupervisedFolder(std::string_view command_line) {
  std::vector<std::string_view> arguments;
  for (size_t end; (end = command_line.find('\0')) != std::string_view::npos;) {
    arguments.push_back(command_line.substr(0, end));
    command_line.remove_prefix(end + 1);
  }
  if (arguments.size() != 4 || arguments[1] != "supervise" || arguments[2] != "--data-dir") {
    return std::nullopt;
  }
  const std::string_view binary = arguments[0].substr(arguments[0].rfind('/') + 1);
  return binary == "troupe" ? std::optional<std::string>(arguments[3]) : std::nullopt;
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
    const std::optional<std::string> folder = SupervisedFolder(*command_line);
    const std::optional<ProcessId> process = FindProcess(pid);
    if (folder && process) found.emplace_back(process->start_ticks, *folder);
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> folders;
  for (auto& [start_ticks, folder] : found) folders.push_back(std::move(folder));
  return folders;
}

}  // namespace troupe
