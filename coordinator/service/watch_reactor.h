// One WatchJob stream: the stored history from a given step, then live updates, without gap or
// repetition.
#ifndef TROUPE_COORDINATOR_SERVICE_WATCH_REACTOR_H_
#define TROUPE_COORDINATOR_SERVICE_WATCH_REACTOR_H_

#include <grpcpp/grpcpp.h>

#include "coordinator/service/engine.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

// Creates a reactor that deletes itself. The stream ends with `end` when the job has ended; with
// RESOURCE_EXHAUSTED, naming the step to resume from, if its reader is too slow; or with NOT_FOUND.
// `engine` outlives it.
grpc::ServerWriteReactor<v1::WatchJobResponse>* NewWatchReactor(Engine& engine,
                                                                const v1::WatchJobRequest& request);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_WATCH_REACTOR_H_
