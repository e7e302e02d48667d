// Calls this server at intervals, as a client would but without a connection, to detect whether
// calls are still answered. Such a call passes through gRPC's threads, the engine and its catalog.
//
// An actor that never blocks. Overload: there is at most one call at a time; while one is not
// answered, an interval passes without another.
#ifndef TROUPE_COORDINATOR_SERVICE_SELF_CALL_H_
#define TROUPE_COORDINATOR_SERVICE_SELF_CALL_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
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
  // Calls every `interval` on `channel`, an in-process channel.
  SelfCall(const std::shared_ptr<grpc::Channel>& channel, Duration interval,
           std::shared_ptr<SelfCallRecord> record)
      : stub_(v1::ClusterService::NewStub(channel)),
        interval_(interval),
        record_(std::move(record)) {}

  Status Start(Context& context) override;
  Status Handle(AnyMessage message, Context& context) override;

 private:
  const std::unique_ptr<v1::ClusterService::Stub> stub_;
  const Duration interval_;
  const std::shared_ptr<SelfCallRecord> record_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_SELF_CALL_H_
