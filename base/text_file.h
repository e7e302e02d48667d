// Reads a whole small file, also one of /proc, whose size is not known before it is read.
#ifndef TROUPE_BASE_TEXT_FILE_H_
#define TROUPE_BASE_TEXT_FILE_H_

#include <string>

#include "base/status.h"

namespace troupe {

// Returns the content of the file at `path`. NOT_FOUND where it cannot be opened, UNAVAILABLE where
// a read fails: a file of /proc, for one, whose process ends meanwhile. Thread-safe.
StatusOr<std::string> ReadTextFile(const std::string& path);

}  // namespace troupe

#endif  // TROUPE_BASE_TEXT_FILE_H_
