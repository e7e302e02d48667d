// Runs the coordinator's machine: takes events from any thread, steps them one at a time on an
// actor, makes what they write durable and then performs the rest. Events that wait together share
// one synced write.
//
// A write that fails leaves it unknown what is durable: the engine then stops for good and says so
// to `on_failure`; the process is to end, and a restart recovers what is there.
//
// Thread-safe. Callbacks run on the engine's thread, must not block and must not destroy the
// engine.
#ifndef TROUPE_COORDINATOR_ENGINE_H_
#define TROUPE_COORDINATOR_ENGINE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/status.h"
#include "base/store.h"
#include "coordinator/machine.h"

namespace troupe {

// The sending half of one worker's stream.
class SessionSink {
 public:
  virtual ~SessionSink() = default;
  // Queues `message`; ends the stream after it if `then_close`. Never blocks.
  virtual void Send(v1::CoordinatorMessage message, bool then_close) = 0;
};

// One watcher.
class WatchSink {
 public:
  virtual ~WatchSink() = default;
  // Never blocks. False: it is gone or too slow, and gets no more.
  virtual bool Push(const v1::WatchJobResponse& update) = 0;
};

// What a watcher missed when it subscribed; live updates follow without a gap. History is in the
// store.
struct WatchStart {
  Status status;                                 // NOT_FOUND
  std::vector<v1::JobEvent> events;              // all stored ones
  std::vector<v1::StepEvent> unflushed;          // newer than the stored history
  v1::JobState end = v1::JOB_STATE_UNSPECIFIED;  // if the job has ended
};

struct EngineOptions {
  Store* store = nullptr;  // outlives the engine, as do clock and metrics
  const Clock* clock = nullptr;
  Metrics* metrics = nullptr;
  CoordinatorOptions machine;
  std::function<void(const Status&)> on_failure;
};

class Engine {
 public:
  // Advances the leader epoch, recovers the state from the store and starts to step.
  static StatusOr<std::unique_ptr<Engine>> Start(EngineOptions options);
  ~Engine();

  SessionId OpenSession(std::shared_ptr<SessionSink> sink);
  // RESOURCE_EXHAUSTED when too much waits: the stream should be ended.
  Status Say(SessionId session, v1::WorkerMessage message);
  void CloseSession(SessionId session);

  // `make(call)` makes the event; `done` is called once with its reply, unless the call is
  // abandoned first.
  using MakeCall = std::function<decltype(Event::what)(CallId)>;
  CallId Call(const MakeCall& make, std::function<void(Reply)> done);
  CallId ReadLogs(const v1::ReadJobLogsRequest& request, std::function<void(LogChunk)> chunk);
  void Abandon(CallId call);

  // Calls `read` with the state as all events so far have left it, durable.
  void Query(std::function<void(const CoordinatorState&)> read);

  // Calls `start`, then pushes updates of the job into `sink` until that returns false.
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

#endif  // TROUPE_COORDINATOR_ENGINE_H_
