// Sends to the actors of one system from threads that may outlive it: gRPC's, those of a driver,
// and those that a hanging file system blocks.
#ifndef TROUPE_WORKER_DAEMON_ACTOR_GATE_H_
#define TROUPE_WORKER_DAEMON_ACTOR_GATE_H_

#include <mutex>
#include <shared_mutex>
#include <utility>

#include "actor/system.h"

namespace troupe {

// Thread-safe.
class ActorGate {
 public:
  // `system` lives until Close.
  explicit ActorGate(ActorSystem* system) : system_(system) {}

  // Like ActorSystem::Send; NOT_FOUND once closed.
  Status Send(Address to, AnyMessage message) {
    const std::shared_lock lock(mutex_);
    if (system_ == nullptr) return NotFound("the actors have ended");
    return system_->Send(to, std::move(message));
  }
  // Like ActorSystem::Stop; no effect once the actor has ended.
  void Stop(Address actor, Status cause) {
    const std::shared_lock lock(mutex_);
    if (system_ != nullptr) system_->Stop(actor, std::move(cause)).IgnoreError();
  }

  // When it returns, no call uses the system any more.
  void Close() {
    const std::unique_lock lock(mutex_);
    system_ = nullptr;
  }

 private:
  std::shared_mutex mutex_;
  ActorSystem* system_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_DAEMON_ACTOR_GATE_H_
