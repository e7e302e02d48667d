// WorkerService: each worker's stream, as a sink of the engine and a source of its events.
#ifndef TROUPE_COORDINATOR_SESSION_SERVICE_H_
#define TROUPE_COORDINATOR_SESSION_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "coordinator/engine.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {

// The server takes in no larger message. A rank's vote for a checkpoint lists all of its tensors, up
// to kCheckpointMessageBytesMax of them. All messages on their way share one quota of memory
// (server.cc), so that larger ones do not let strangers take more of it.
inline constexpr int kMaxReceiveBytes = 64 << 20;
// The first message of a stream, which comes from nobody known yet, and a request have less.
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

#endif  // TROUPE_COORDINATOR_SESSION_SERVICE_H_
