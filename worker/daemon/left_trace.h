// Reads the trace that an ended rank left of its last steps.
#ifndef TROUPE_WORKER_DAEMON_LEFT_TRACE_H_
#define TROUPE_WORKER_DAEMON_LEFT_TRACE_H_

#include "base/file_system.h"
#include "troupe/v1/worker.pb.h"
#include "worker/session/state.h"

namespace troupe {

// Returns the answer to `request` for `rank`: its events, or a code and the reason why there are
// none (FAILED_PRECONDITION: the trace of that group epoch is missing or has other steps).
v1::WorkerMessage ReadLeftTrace(FileSystem& files, const session::Config& config,
                                const v1::TraceRequest& request, int rank);

}  // namespace troupe

#endif  // TROUPE_WORKER_DAEMON_LEFT_TRACE_H_
