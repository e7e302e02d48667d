#include "cli/output/relative_path.h"

#include <algorithm>

namespace troupe {
namespace {

constexpr std::string_view kBeforePaths = " \t\n\"'`([{<=";
// The ends of paths: a directory that is written with a slash at its end stays as it is.
constexpr std::string_view kBehindPaths = " \t\n\"'`)]}>,:;";

// Returns what a relative path needs at its beginning to be taken for a path.
std::string_view MarkOf(std::string_view relative) {
  const bool is_taken_for_more = relative.starts_with("jobs/") || relative.starts_with('-') ||
                                 relative.starts_with('~') || relative.find('@') != relative.npos;
  return is_taken_for_more ? "./" : "";
}

// Returns `directory` with the slash that a path below it has next; empty if nothing is relative.
std::string BeginOf(std::string_view directory) {
  if (directory.empty() || directory == "/") return "";
  return std::string(directory) + (directory.ends_with('/') ? "" : "/");
}

// Returns `rest` without the slashes at its beginning: "/a//b" is below "/a".
std::string_view WithoutSlashes(std::string_view rest) {
  return rest.substr(std::min(rest.find_first_not_of('/'), rest.size()));
}

}  // namespace

std::string RelativePath(std::string_view path, std::string_view directory) {
  const std::string begin = BeginOf(directory);
  if (begin.empty() || !path.starts_with(begin)) return std::string(path);
  const std::string_view relative = WithoutSlashes(path.substr(begin.size()));
  if (relative.empty()) return std::string(path);
  return std::string(MarkOf(relative)) + std::string(relative);
}

std::string WithRelativePaths(std::string_view text, std::string_view directory) {
  const std::string begin = BeginOf(directory);
  if (begin.empty()) return std::string(text);
  std::string shown;
  for (size_t at = 0; at < text.size();) {
    const size_t found = text.find(begin, at);
    const size_t end = found == text.npos ? text.size() : found;
    shown += text.substr(at, end - at);
    if (found == text.npos) break;
    at = found + begin.size();
    const bool begins_path = found == 0 || kBeforePaths.find(text[found - 1]) != kBeforePaths.npos;
    const std::string_view rest = WithoutSlashes(text.substr(at));
    const bool has_more = !rest.empty() && kBehindPaths.find(rest[0]) == kBehindPaths.npos;
    if (!begins_path || !has_more) {
      shown += begin;
    } else {
      shown += MarkOf(rest.substr(0, rest.find(' ')));
      at = text.size() - rest.size();
    }
  }
  return shown;
}

}  // namespace troupe
