// The directories that a coordinator uses: that of its catalog, and the folder of the checkpoints
// of jobs that state none.
#ifndef TROUPE_COORDINATOR_SERVICE_DATA_DIRECTORY_H_
#define TROUPE_COORDINATOR_SERVICE_DATA_DIRECTORY_H_

#include <string>

#include "base/status.h"

namespace troupe {

// Makes the directory if it is absent. Only its owner may list it: the audit log has addresses and
// names, and job specs have paths.
Status MakeDataDirectory(const std::string& path);

// Returns the checkpoint.folder of jobs that state none: `root`, or if it is empty a folder in the
// data directory.
StatusOr<std::string> DefaultCheckpointFolder(const std::string& root,
                                              const std::string& data_directory);

// Returns the identity of --checkpoint-root, which it is given if it has none. Without such a root,
// and if the root is full, returns an empty string.
std::string CheckpointRootId(const std::string& root);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_DATA_DIRECTORY_H_
