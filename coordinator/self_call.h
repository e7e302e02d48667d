// Calls this very server at intervals, as a client would but without a connection, so that it is
// known whether calls are still answered: gRPC's threads, the engine and its catalog take part.
#ifndef TROUPE_COORDINATOR_SELF_CALL_H_
#define TROUPE_COORDINATOR_SELF_CALL_H_

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
  // Calls every `interval` on `channel`, an in-process one.
  SelfCall(std::shared_ptr<grpc::Channel> channel, std::chrono::milliseconds interval);
  ~SelfCall();
  SelfCall(const SelfCall&) = delete;
  SelfCall& operator=(const SelfCall&) = delete;

  // Ends the calls, within the limit of one, a second. Idempotent.
  void Stop();

  // Since the last call that was answered.
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

#endif  // TROUPE_COORDINATOR_SELF_CALL_H_
