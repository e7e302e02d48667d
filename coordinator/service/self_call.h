// Calls this server at intervals, as a client would but without a connection, to detect whether
// calls are still answered. Such a call passes through gRPC's threads, the engine and its catalog.
#ifndef TROUPE_COORDINATOR_SERVICE_SELF_CALL_H_
#define TROUPE_COORDINATOR_SERVICE_SELF_CALL_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "base/last_sign.h"

namespace troupe {

class SelfCall {
 public:
  // Calls every `interval` on `channel`, an in-process channel.
  SelfCall(std::shared_ptr<grpc::Channel> channel, std::chrono::milliseconds interval);
  ~SelfCall();
  SelfCall(const SelfCall&) = delete;
  SelfCall& operator=(const SelfCall&) = delete;

  // Ends the calls within one call's limit, one second. Idempotent.
  void Stop();

  // Time since the last answered call.
  std::chrono::steady_clock::duration Age() const { return answered_.Age(); }

 private:
  void Run();

  const std::shared_ptr<grpc::Channel> channel_;
  const std::chrono::milliseconds interval_;
  LastSign answered_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_SELF_CALL_H_
