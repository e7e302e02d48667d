// Converts a path of the command line to the absolute path that the coordinator uses, and by which
// a local cluster is known.
#ifndef TROUPE_CLI_CLUSTER_ABSOLUTE_PATH_H_
#define TROUPE_CLI_CLUSTER_ABSOLUTE_PATH_H_

#include <filesystem>
#include <string>

#include "base/status.h"

namespace troupe {

// Returns `path` without `.`, `..` and a trailing slash. Symbolic links are not resolved. Pure.
std::string NormalPath(const std::filesystem::path& path);

// Returns `path` relative to the working directory as NormalPath returns the absolute one.
// INVALID_ARGUMENT of CheckText.
StatusOr<std::string> AbsolutePath(const std::string& path);

}  // namespace troupe

#endif  // TROUPE_CLI_CLUSTER_ABSOLUTE_PATH_H_
