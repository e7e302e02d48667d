// Folders that a job reads and that may be away on a host for a while: those of its data, of
// model.from and of its checkpoints. An error that shows nothing about the contents of such a
// folder is a fault of the host with cause STORAGE: another host is tried, or the folder is waited
// for. Contents that cannot be used are another error.
#ifndef TROUPE_WORKER_EXECUTOR_FOLDER_FAULT_H_
#define TROUPE_WORKER_EXECUTOR_FOLDER_FAULT_H_

#include <string>
#include <string_view>

#include "base/file_system.h"
#include "base/status.h"

namespace troupe {

// If `status`, of a file in the folder that is named `what`, may come from a folder that is away,
// returns it with cause STORAGE: FAILED_PRECONDITION if the file does not exist here or may not be
// read, UNAVAILABLE if it cannot be read now. Returns OK if it is another error, or has a cause.
Status FolderFault(const Status& status, std::string_view what);

// Whether the folder is absent here, is empty like the mount point of a disk that is not mounted,
// or cannot be listed. Otherwise a file that it lacks is missing.
bool FolderIsAway(FileSystem& files, const std::string& folder);

// Returns an error of the folder that the job's `key` names: FolderFault, unless the folder is here
// and lacks a file, else `status` with the key. OK if it is no error.
Status FaultOfKey(FileSystem& files, std::string_view key, const std::string& folder,
                  const Status& status);

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_FOLDER_FAULT_H_
