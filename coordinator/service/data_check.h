// Checks the data of a new job, and the checkpoint it starts from, before the job is accepted.
// Opening data may take a while, so do not call these checks on the engine's actor.
#ifndef TROUPE_COORDINATOR_SERVICE_DATA_CHECK_H_
#define TROUPE_COORDINATOR_SERVICE_DATA_CHECK_H_

#include <functional>
#include <string>

#include "base/file_system.h"
#include "base/status.h"
#include "coordinator/state/fleet.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/path_roots.pb.h"

namespace troupe {

// Returns INVALID_ARGUMENT with the offending key if training could not open the data of
// `complete`. Data in a folder that is not on this host may be on the workers' hosts and passes
// unless `must_be_here`.
Status CheckJobData(FileSystem& files, const v1::JobSpec& complete, bool must_be_here);

// Returns INVALID_ARGUMENT with checkpoint.initial_load if it contains no checkpoint, or with the
// key that prevents `complete` from continuing from it. A folder that is not on this host passes
// unless `must_be_here`.
Status CheckInitialLoad(FileSystem& files, const v1::JobSpec& complete, bool must_be_here);

// Returns INVALID_ARGUMENT with checkpoint.folder if it does not exist and cannot be made here.
// Passes unless it `must_be_here`, and if its disk is full or read-only at present, which a job
// waits out. The folder is not left behind.
Status CheckCheckpointFolder(FileSystem& files, const v1::JobSpec& complete, bool must_be_here);

// Makes all of these checks, in this order, with the files of this host. Returns INVALID_ARGUMENT
// with the offending key if a path leaves its root here.
Status CheckJobFiles(const v1::JobSpec& complete, const v1::PathRoots& roots, bool must_be_here);

// The signature of CheckJobFiles, for who replaces it.
using CheckFiles = std::function<Status(const v1::JobSpec& complete, const v1::PathRoots& roots,
                                        bool must_be_here)>;

// Returns `check` with another check before it: FAILED_PRECONDITION with checkpoint.folder if a job
// saves in `root`, the coordinator's --checkpoint-root, or beneath it, and `root` is no directory
// here any more or has lost its identity `id` (checkpoint/format/folder.h; empty: not known). A
// worker would create it, on its own disk where a volume was mounted.
CheckFiles WithCheckpointRoot(std::string root, std::string id, CheckFiles check);

// Returns true if there are workers and all of them run on this host, so that data missing here
// exists nowhere.
bool AllWorkersAreHere(const Fleet& fleet);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_DATA_CHECK_H_
