// One WatchJob stream: the stored history from a given step, then live updates, without gap or
// repetition.
#ifndef TROUPE_COORDINATOR_SERVICE_WATCH_REACTOR_H_
#define TROUPE_COORDINATOR_SERVICE_WATCH_REACTOR_H_

#include <grpcpp/grpcpp.h>

#include "actor/work_pool.h"
#include "base/store/store.h"
#include "coordinator/engine/engine.h"
#include "coordinator/service/call_audit.h"
#include "coordinator/service/user_counts.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

// Creates a reactor that deletes itself. The stream ends with `end` when the job has ended; with
// RESOURCE_EXHAUSTED, naming the step to resume from, if its reader is too slow; with NOT_FOUND; or
// with UNAUTHENTICATED when the caller's access ends.
//
// The first part of the history is read on `history`. The others are read by the thread of gRPC
// that has written the former part: gRPC's flow control bounds these reads to one for each stream,
// and an actor would only add a hop. `engine`, `store` and `audit` outlive the stream, which keeps
// `ticket`.
grpc::ServerWriteReactor<v1::WatchJobResponse>* NewWatchReactor(
    Engine& engine, const Store& store, const WorkPool& history, const CallAudit& audit,
    const grpc::CallbackServerContext& context, const v1::WatchJobRequest& request,
    UserTicket ticket = {});

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_WATCH_REACTOR_H_
