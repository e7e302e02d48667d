// The actor that runs the coordinator's state machine: it steps events one at a time, makes their
// writes durable and then performs the other effects. Events that wait together share one synced
// write.
//
// The catalog is written here and not by an actor of its own. Nothing may happen until a write is
// durable (effects are performed in order, and queries see durable state), so another actor would
// add two hops to every event and let nothing overlap. The history's rows are in the same batches.
//
// Overload: a full mailbox refuses events, calls and queries with RESOURCE_EXHAUSTED, and their
// senders end the stream or the call. What ends something that this actor admitted (a session, a
// call) always fits.
//
// After a failed write it is unknown what is durable. The actor then ends with that cause; the
// process must end, and a restart recovers the stored state.
#ifndef TROUPE_COORDINATOR_ENGINE_ENGINE_ACTOR_H_
#define TROUPE_COORDINATOR_ENGINE_ENGINE_ACTOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actor/actor.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/store/store.h"
#include "coordinator/engine/measured.h"
#include "coordinator/engine/stall_guard.h"
#include "coordinator/engine/watch_fanout.h"
#include "coordinator/machine/machine.h"

namespace troupe {

// The sending half of one worker's stream.
class SessionSink {
 public:
  virtual ~SessionSink() = default;
  // Queues `message` and, if `then_close`, ends the stream after it. Never blocks.
  virtual void Send(v1::CoordinatorMessage message, bool then_close) = 0;
};

// The messages to the actor.
struct SessionOpened {
  static constexpr std::string_view kMessageName = "engine.session_opened";
  SessionId session = 0;
  std::shared_ptr<SessionSink> sink;
};
struct EngineEvent {
  static constexpr std::string_view kMessageName = "engine.event";
  // No call. SessionClosed, CallAbandoned and NamespacesChanged are sent as admitted.
  decltype(Event::what) what;
};
struct EngineCall {
  static constexpr std::string_view kMessageName = "engine.call";
  CallId call = 0;
  decltype(Event::what) what;
  std::function<void(Reply)> done;      // called once, unless the call is abandoned
  std::function<void(LogChunk)> chunk;  // called by a ReadLogsCall instead
};
struct EngineQuery {
  static constexpr std::string_view kMessageName = "engine.query";
  std::function<void(const CoordinatorState&)> read;
};
struct EngineWatch {
  static constexpr std::string_view kMessageName = "engine.watch";
  std::string job;
  std::shared_ptr<WatchSink> sink;
};

class EngineActor final : public Actor {
 public:
  struct Options {
    Store* store = nullptr;  // outlives the actor
    Address watchers;        // a WatchFanout
    Address metrics;         // receives Measured; zero: nobody
    // The number of watchers that the fan-out has; null: not known.
    std::shared_ptr<const std::atomic<int64_t>> watcher_count;
    // Draws the secret of a group of ranks.
    std::function<std::string()> make_group_key;
    std::function<void(const RefusedPath&)> record_path = nullptr;  // null: nobody records them
  };

  EngineActor(Options options, CoordinatorState state)
      : options_(std::move(options)), state_(std::move(state)) {}

  Status Start(Context& context) override;
  Status Handle(AnyMessage message, Context& context) override;
  Status HandleBatchEnd(Context& context) override;

  // For who runs this actor inside another one: the state after all events that were handled, and
  // the effects of those that are not durable yet.
  const CoordinatorState& state() const { return state_; }
  const std::vector<Effects>& pending() const { return pending_; }

 private:
  void StepOne(decltype(Event::what) what, Context& context);
  // Makes the pending effects durable together, then performs their other parts in order.
  Status Perform(Context& context);
  void SendMessages(std::vector<ToWorker>& messages);
  void DeliverChunk(LogChunk chunk);
  void Watch(EngineWatch watch, Context& context);
  void Publish(Updates updates, Context& context);
  // Adds the figures of `touched` jobs to `measured` and sends it. Returns false if it was dropped,
  // because metrics have no room.
  bool SendMeasured(Measured measured, const std::set<std::string>& touched, Context& context);
  // Sends the figures of the workers and of the coordinator itself.
  void SendFleetFigures(Context& context);
  void LookForStall(MonotonicTime now);
  void SetAlarm(Context& context);

  const Options options_;
  CoordinatorState state_;
  std::optional<StallGuard> stall_guard_;
  std::vector<Effects> pending_;
  TimerId alarm_;
  MonotonicTime alarm_time_;
  MonotonicTime worker_figures_time_;
  MonotonicTime turn_begin_;               // when the oldest pending effects were made
  DurationCounts turns_, catalog_writes_;  // since the last figures
  bool updates_lost_ = false;              // reported to the fan-out, which is still full
  // The measurements that metrics missed because its mailbox was full.
  bool figures_lost_ = false;
  uint64_t measurements_dropped_ = 0;
  std::vector<std::string> forgotten_unsent_;
  std::unordered_map<SessionId, std::shared_ptr<SessionSink>> sessions_;
  std::unordered_map<CallId, std::function<void(Reply)>> replies_;
  std::unordered_map<CallId, std::function<void(LogChunk)>> chunks_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_ENGINE_ENGINE_ACTOR_H_
