// What a rank that has ended left behind of its last steps.
#ifndef TROUPE_WORKER_LEFT_TRACE_H_
#define TROUPE_WORKER_LEFT_TRACE_H_

#include "base/file_system.h"
#include "troupe/v1/worker.pb.h"
#include "worker/session/session.h"

namespace troupe {

// The answer to `request` for `rank`: its events, or with a code why they cannot be had
// (FAILED_PRECONDITION: nothing is left of that group epoch, or other steps).
v1::WorkerMessage ReadLeftTrace(FileSystem& files, const session::Config& config,
                                const v1::TraceRequest& request, int rank);

}  // namespace troupe

#endif  // TROUPE_WORKER_LEFT_TRACE_H_
