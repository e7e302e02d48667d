// The coordinator's engine as the rest of the process sees it: the actor of the state machine
// (engine_actor.h) and the fan-out to watchers (watch_fanout.h), on an actor system that the caller
// owns.
//
// Both are root actors. If one ends, ActorSystemOptions::on_root_end learns the cause; the process
// must end then, and a restart recovers the stored state.
//
// Thread-safe. Callbacks run on a thread of the actor system; they must not block.
#ifndef TROUPE_COORDINATOR_ENGINE_ENGINE_H_
#define TROUPE_COORDINATOR_ENGINE_ENGINE_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "actor/system.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/store/store.h"
#include "coordinator/engine/engine_actor.h"
#include "coordinator/engine/watch_fanout.h"
#include "coordinator/machine/machine.h"

namespace troupe {

// The most events that wait for the engine, far more than a healthy cluster ever has.
inline constexpr size_t kMostWaitingEvents = 65536;

struct EngineOptions {
  ActorSystem* system = nullptr;  // outlives all calls of the engine, like store
  Store* store = nullptr;
  const Clock* clock = nullptr;
  Address metrics;  // an actor that receives Measured; zero: nobody
  CoordinatorOptions machine;
  size_t most_waiting_events = kMostWaitingEvents;
  size_t most_waiting_updates = kMostWaitingUpdates;
  // Called before the ranks of the path's job learn of its end; null: nobody records them.
  std::function<void(const RefusedPath&)> record_path = nullptr;
};

class Engine {
 public:
  // Increments the leader epoch, recovers the state from the store and starts stepping.
  static StatusOr<std::unique_ptr<Engine>> Start(EngineOptions options);

  // The calls below return RESOURCE_EXHAUSTED if too many events wait, and UNAVAILABLE if the
  // engine has ended. The caller should then end the stream or the call.

  StatusOr<SessionId> OpenSession(std::shared_ptr<SessionSink> sink);
  Status Receive(SessionId session, v1::WorkerMessage message);
  void CloseSession(SessionId session);

  // `make(call)` creates the event. `done` is called once with its reply, unless the call is
  // abandoned first. Returns 0 if the event was refused; `done` was then called with the error.
  using MakeCall = std::function<decltype(Event::what)(CallId)>;
  CallId Call(const MakeCall& make, const std::function<void(Reply)>& done);
  CallId ReadLogs(const v1::ReadJobLogsRequest& request,
                  const std::function<void(LogChunk)>& chunk);
  // Has no effect on 0 and on a call that was answered.
  void Abandon(CallId call);

  // Calls `read` with the durable state after all events that this thread submitted before.
  Status Query(std::function<void(const CoordinatorState&)> read);

  // Replaces the namespaces, however many events wait.
  void SetNamespaces(std::shared_ptr<const Namespaces> namespaces);

  // Begins `sink`, then pushes the job's updates into it until Push returns false; or ends it.
  void Watch(const std::string& job, const std::shared_ptr<WatchSink>& sink);

 private:
  Engine(ActorSystem& system, Address actor, size_t most_waiting_events)
      : system_(system), actor_(actor), most_waiting_events_(most_waiting_events) {}
  Status Send(AnyMessage message);

  ActorSystem& system_;
  const Address actor_;
  const size_t most_waiting_events_;
  std::atomic<SessionId> last_session_{0};
  std::atomic<CallId> last_call_{0};
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_ENGINE_ENGINE_H_
