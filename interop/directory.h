// Creates the directories that import and export fill.
#ifndef TROUPE_INTEROP_DIRECTORY_H_
#define TROUPE_INTEROP_DIRECTORY_H_

#include <string>

#include "base/file_system.h"
#include "base/status.h"

namespace troupe {

// Creates `path` and its missing parents. OK if it is already an empty directory, ALREADY_EXISTS if
// it is anything else.
Status MakeEmptyDirectory(FileSystem& files, const std::string& path);

}  // namespace troupe

#endif  // TROUPE_INTEROP_DIRECTORY_H_
