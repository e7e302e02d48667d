// A path of the command line as the coordinator knows it.
#ifndef TROUPE_CLI_ABSOLUTE_PATH_H_
#define TROUPE_CLI_ABSOLUTE_PATH_H_

#include <string>

#include "base/status.h"

namespace troupe {

// `path` against the working directory, without `.`, `..` and a trailing slash; links are kept.
StatusOr<std::string> AbsolutePath(const std::string& path);

}  // namespace troupe

#endif  // TROUPE_CLI_ABSOLUTE_PATH_H_
