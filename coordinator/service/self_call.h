// Calls this server at intervals, as a client would but without a connection, to detect whether
// calls are still answered. Such a call passes through gRPC's threads, the engine and its catalog.
//
// The gRPC health service reports NOT_SERVING from the time at which no call was answered for a
// limit until one is, so that a readiness probe notices a server that is up but does nothing.
//
// An actor that never blocks. Overload: there is at most one call at a time; while one is not
// answered, an interval passes without another.
#ifndef TROUPE_COORDINATOR_SERVICE_SELF_CALL_H_
#define TROUPE_COORDINATOR_SERVICE_SELF_CALL_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string_view>

#include "actor/actor.h"
#include "base/clock.h"
#include "base/last_sign.h"
#include "base/open_calls.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {

// The outcome of the calls. gRPC's threads write to it, also after the actor's end. Thread-safe.
struct SelfCallRecord {
  LastSign answered;
  std::atomic<bool> in_flight{false};
  std::atomic<bool> complained{false};
  OpenCalls calls;  // for as long as one is open, another pointer to the channel must be kept
};

class SelfCall final : public Actor {
 public:
  // Receives, at every interval, whether a call was answered within the limit. Called on the
  // actor's thread.
  using OnReadiness = std::function<void(bool ready)>;

  // Calls every `interval` on `channel`, an in-process channel. The server is ready while a call
  // was answered at most `ready_limit` ago.
  SelfCall(const std::shared_ptr<grpc::Channel>& channel, Duration interval,
           std::shared_ptr<SelfCallRecord> record, std::chrono::duration<double> ready_limit,
           OnReadiness on_readiness)
      : stub_(v1::ClusterService::NewStub(channel)),
        interval_(interval),
        record_(std::move(record)),
        ready_limit_(ready_limit),
        on_readiness_(std::move(on_readiness)) {}

  Status Start(Context& context) override;
  Status Handle(AnyMessage message, Context& context) override;

 private:
  const std::unique_ptr<v1::ClusterService::Stub> stub_;
  const Duration interval_;
  const std::shared_ptr<SelfCallRecord> record_;
  const std::chrono::duration<double> ready_limit_;
  const OnReadiness on_readiness_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_SELF_CALL_H_
