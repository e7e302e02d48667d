// One ReadJobLogs stream: log lines as they arrive from the workers.
#ifndef TROUPE_COORDINATOR_SERVICE_LOG_REACTOR_H_
#define TROUPE_COORDINATOR_SERVICE_LOG_REACTOR_H_

#include <grpcpp/grpcpp.h>

#include "coordinator/engine/engine.h"
#include "coordinator/service/call_audit.h"
#include "coordinator/service/user_counts.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

// Creates a reactor that deletes itself. The stream ends with UNAUTHENTICATED when the caller's
// access ends. `engine` and `audit` outlive the stream, which keeps `ticket`.
grpc::ServerWriteReactor<v1::ReadJobLogsResponse>* NewLogReactor(
    Engine& engine, const CallAudit& audit, const grpc::CallbackServerContext& context,
    const v1::ReadJobLogsRequest& request, UserTicket ticket);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_LOG_REACTOR_H_
