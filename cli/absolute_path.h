// Converts a path of the command line to the absolute path that the coordinator uses.
#ifndef TROUPE_CLI_ABSOLUTE_PATH_H_
#define TROUPE_CLI_ABSOLUTE_PATH_H_

#include <string>

#include "base/status.h"

namespace troupe {

// Returns `path` relative to the working directory as an absolute path without `.`, `..` and a
// trailing slash. Symbolic links are not resolved. INVALID_ARGUMENT of CheckText.
StatusOr<std::string> AbsolutePath(const std::string& path);

}  // namespace troupe

#endif  // TROUPE_CLI_ABSOLUTE_PATH_H_
