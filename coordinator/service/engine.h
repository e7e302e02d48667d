// Runs the coordinator's state machine: accepts events from any thread, steps them one at a time on
// an actor, makes their writes durable and then performs the other effects. Events that queue up
// together share one synced write.
//
// After a failed write it is unknown what is durable. The engine then stops permanently and reports
// to `on_failure`; the process must end, and a restart recovers the stored state.
//
// Thread-safe. Callbacks run on the engine's thread and must not block or destroy the engine.
#ifndef TROUPE_COORDINATOR_SERVICE_ENGINE_H_
#define TROUPE_COORDINATOR_SERVICE_ENGINE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/metrics/metrics.h"
#include "base/status.h"
#include "base/store/store.h"
#include "coordinator/machine/machine.h"

namespace troupe {

// The sending half of one worker's stream.
class SessionSink {
 public:
  virtual ~SessionSink() = default;
  // Queues `message` and, if `then_close`, ends the stream after it. Never blocks.
  virtual void Send(v1::CoordinatorMessage message, bool then_close) = 0;
};

// The receiver of one watcher's updates.
class WatchSink {
 public:
  virtual ~WatchSink() = default;
  // Never blocks. Returns false if the watcher is gone or too slow; it then gets no more updates.
  virtual bool Push(const v1::WatchJobResponse& update) = 0;
};

// The state that a watcher missed before it subscribed; live updates follow without a gap. The
// history is in the store.
struct WatchStart {
  Status status;                                 // NOT_FOUND, or why the events could not be read
  std::vector<v1::JobEvent> events;              // all stored events
  std::vector<v1::StepEvent> unflushed;          // steps newer than the stored history
  v1::JobState end = v1::JOB_STATE_UNSPECIFIED;  // final state, if the job has ended
};

struct EngineOptions {
  Store* store = nullptr;  // must outlive the engine, like clock and metrics
  const Clock* clock = nullptr;
  Metrics* metrics = nullptr;
  CoordinatorOptions machine;
  std::function<void(const Status&)> on_failure;
};

class Engine {
 public:
  // Increments the leader epoch, recovers the state from the store and starts stepping.
  static StatusOr<std::unique_ptr<Engine>> Start(EngineOptions options);
  ~Engine();

  SessionId OpenSession(std::shared_ptr<SessionSink> sink);
  // Queues the message. Returns RESOURCE_EXHAUSTED if too many events are queued; the caller should
  // then end the stream.
  Status Receive(SessionId session, v1::WorkerMessage message);
  void CloseSession(SessionId session);

  // `make(call)` creates the event. `done` is called once with its reply, unless the call is
  // abandoned first.
  using MakeCall = std::function<decltype(Event::what)(CallId)>;
  CallId Call(const MakeCall& make, std::function<void(Reply)> done);
  CallId ReadLogs(const v1::ReadJobLogsRequest& request, std::function<void(LogChunk)> chunk);
  void Abandon(CallId call);

  // Calls `read` with the durable state after all events submitted so far.
  void Query(std::function<void(const CoordinatorState&)> read);

  // Calls `start`, then pushes updates of the job into `sink` until Push returns false.
  void Watch(const std::string& job, std::shared_ptr<WatchSink> sink,
             std::function<void(WatchStart)> start);

  const Store& store() const;
  const Planner& planner() const;

 private:
  class Stepping;
  explicit Engine(std::unique_ptr<Stepping> stepping);
  const std::unique_ptr<Stepping> stepping_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_ENGINE_H_
