// Checks the path of a checkpoint that the command line names.
#ifndef TROUPE_CLI_CHECKPOINT_FOLDER_H_
#define TROUPE_CLI_CHECKPOINT_FOLDER_H_

#include <string>

#include "base/file_system.h"
#include "base/status.h"

namespace troupe {

// INVALID_ARGUMENT if `path` is a file: a checkpoint is named by its folder. NOT_FOUND if there is
// nothing.
Status CheckCheckpointFolder(FileSystem& files, const std::string& path);

}  // namespace troupe

#endif  // TROUPE_CLI_CHECKPOINT_FOLDER_H_
