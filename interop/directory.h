// The directories that import and export write: new ones, and gone again after an error.
#ifndef TROUPE_INTEROP_DIRECTORY_H_
#define TROUPE_INTEROP_DIRECTORY_H_

#include <string>

#include "base/file_system.h"
#include "base/status.h"

namespace troupe {

// Makes `path` and what is missing above it. OK if it is an empty directory already, ALREADY_EXISTS
// if there is anything else.
Status MakeEmptyDirectory(FileSystem& files, const std::string& path);

// Removes the directory and the files in it, as far as that goes: its caller reports another error.
// REQUIRES: MakeEmptyDirectory made it.
void RemoveDirectoryWithFiles(FileSystem& files, const std::string& path);

}  // namespace troupe

#endif  // TROUPE_INTEROP_DIRECTORY_H_
