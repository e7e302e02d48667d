#include "cli/cluster/process_folder.h"

#include <algorithm>
#include <vector>

#include "base/failpoint.h"

namespace troupe {
namespace {

std::vector<std::string_view> ArgumentsOf(std::string_view command_line) {
  std::vector<std::string_view> arguments;
  for (size_t end; (end = command_line.find('\0')) != std::string_view::npos;) {
    arguments.push_back(command_line.substr(0, end));
    command_line.remove_prefix(end + 1);
  }
  return arguments;
}

std::string_view BinaryOf(std::string_view path) { return path.substr(path.rfind('/') + 1); }

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

}  // namespace troupe
