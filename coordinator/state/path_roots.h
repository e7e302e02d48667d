// Checks the paths of a job against the roots of its namespace by their text alone. The ranks,
// which open the paths, see symbolic links too. Pure.
#ifndef TROUPE_COORDINATOR_STATE_PATH_ROOTS_H_
#define TROUPE_COORDINATOR_STATE_PATH_ROOTS_H_

#include "base/status.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/namespace.pb.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

// INVALID_ARGUMENT, naming field, value and root, for each path below `spec` (a key with the option
// `path`) that is not absolute, contains "..", or is not beneath the root that the option `root` of
// its key names. Empty paths, and those whose root is empty, are not confined.
Status CheckPaths(const v1::JobSpec& spec, const v1::Namespace& space);

// The same for the spec and the checkpoints of a request.
Status CheckPaths(const v1::RebuildJobRequest& request, const v1::Namespace& space);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_STATE_PATH_ROOTS_H_
