// WorkerService: each worker's stream, as a sink of the engine and a source of its events.
#ifndef TROUPE_COORDINATOR_SESSION_SERVICE_H_
#define TROUPE_COORDINATOR_SESSION_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "coordinator/engine.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {

// Of one message to the coordinator; larger ones are refused.
inline constexpr int kMaxReceiveBytes = 4 << 20;

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
