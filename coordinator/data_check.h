// Looks at the data of a new job, and at the checkpoint it begins with, before it is accepted. Opening data may take a while: not for the
// engine's thread.
#ifndef TROUPE_COORDINATOR_DATA_CHECK_H_
#define TROUPE_COORDINATOR_DATA_CHECK_H_

#include "base/file_system.h"
#include "base/status.h"
#include "coordinator/fleet.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// INVALID_ARGUMENT naming the key to blame where training could not open the data of `complete`.
// Data whose folder is not on this host may be on the workers', and passes unless `must_be_here`.
Status CheckJobData(FileSystem& files, const v1::JobSpec& complete, bool must_be_here);

// INVALID_ARGUMENT naming checkpoint.initial_load where it holds no checkpoint, or the key in whose
// value `complete` cannot go on from it. The same of a folder that is not on this host.
Status CheckInitialLoad(FileSystem& files, const v1::JobSpec& complete, bool must_be_here);

// True where there are workers and all of them run on this host: what is not here is nowhere.
bool AllWorkersAreHere(const Fleet& fleet);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_DATA_CHECK_H_
