// WorkerService: each worker's stream is a sink of the engine and a source of its events.
#ifndef TROUPE_COORDINATOR_SERVICE_SESSION_SERVICE_H_
#define TROUPE_COORDINATOR_SERVICE_SESSION_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "coordinator/engine/engine.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {

// Maximum size of a message to the server. A rank's vote for a checkpoint lists all of its tensors,
// up to kCheckpointMessageBytesMax of them. All messages in flight share one memory quota
// (server.cc), so the larger limit does not let unknown peers use more of it.
inline constexpr int kMaxReceiveBytes = 64 << 20;
// Maximum size of a request, and of the first message of a stream, whose sender is still unknown.
inline constexpr size_t kMaxRequestBytes = 4 << 20;

// Thread-safe. `engine` outlives the service and its streams.
class SessionService final : public v1::WorkerService::CallbackService {
 public:
  explicit SessionService(Engine& engine) : engine_(engine) {}

  grpc::ServerBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage>* Session(
      grpc::CallbackServerContext* context) override;

 private:
  Engine& engine_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_SESSION_SERVICE_H_
