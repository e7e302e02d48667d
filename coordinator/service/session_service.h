// WorkerService: each worker's stream is a sink of the engine and a source of its events.
//
// Overload: a worker that reads so slowly that kMostWaitingMessages wait for it loses its session,
// and its stream ends with RESOURCE_EXHAUSTED. It may dial again.
//
// With TLS, a stream ends with PERMISSION_DENIED if its Hello has another name than that of
// the worker's certificate, with UNAUTHENTICATED when that certificate expires or is revoked, and
// with RESOURCE_EXHAUSTED if kMostWorkerSessions of the same worker are open.
#ifndef TROUPE_COORDINATOR_SERVICE_SESSION_SERVICE_H_
#define TROUPE_COORDINATOR_SERVICE_SESSION_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <cstddef>

#include "coordinator/engine/engine.h"
#include "coordinator/service/call_audit.h"
#include "coordinator/service/user_counts.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {

// Maximum size of a message to the server. A rank's vote for a checkpoint lists all of its tensors,
// up to kCheckpointMessageBytesMax of them. All messages in flight share one memory quota
// (server.cc), so the larger limit does not let unknown peers use more of it. Other messages are
// limited by request_bytes.h.
inline constexpr int kMaxReceiveBytes = 64 << 20;

// The most messages that wait for one worker, with the one that is being written.
inline constexpr size_t kMostWaitingMessages = 8192;

// The most streams of one worker, with TLS. A daemon has one; those whose connections broke
// unnoticed count until they end.
inline constexpr int kMostWorkerSessions = 16;

// Thread-safe. `engine` and `audit` outlive the service and its streams. Refusals are recorded in
// `audit`.
class SessionService final : public v1::WorkerService::CallbackService {
 public:
  SessionService(Engine& engine, size_t most_waiting, const CallAudit& audit)
      : engine_(engine), most_waiting_(most_waiting), audit_(audit) {}

  grpc::ServerBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage>* Session(
      grpc::CallbackServerContext* context) override;

 private:
  Engine& engine_;
  const size_t most_waiting_;
  const CallAudit& audit_;
  const UserCounts sessions_{{.most = kMostWorkerSessions, .kind = "open sessions", .flag = ""}};
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_SESSION_SERVICE_H_
