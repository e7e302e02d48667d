#include "coordinator/service/engine.h"

#include <sys/random.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>
#include <variant>

#include "actor/system.h"
#include "base/check.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/metrics/metric_list.h"
#include "coordinator/service/measure.h"
#include "coordinator/service/stall_guard.h"
#include "coordinator/state/job_state.h"

namespace troupe {
namespace {

// Limit of queued events, far more than a healthy cluster ever has.
constexpr size_t kMaxInbox = 65536;
// Limit of events that share one synced write.
constexpr size_t kMaxTogether = 256;
constexpr size_t kGroupKeyBytes = 32;
// Shortest interval between two checks of deadlines.
constexpr Duration kShortestAlarm = std::chrono::milliseconds(1);
constexpr Duration kFleetMetricsInterval = std::chrono::milliseconds(500);

struct Poke {
  static constexpr std::string_view kMessageName = "poke";
};
struct Alarm {
  static constexpr std::string_view kMessageName = "alarm";
};

using What = decltype(Event::what);
using ReadState = std::function<void(const CoordinatorState&)>;
using Item = std::variant<What, ReadState>;

std::string RandomKey() {
  std::string key(kGroupKeyBytes, '\0');
  size_t filled = 0;
  while (filled < key.size()) {
    const ssize_t got = getrandom(key.data() + filled, key.size() - filled, 0);
    if (got > 0) filled += static_cast<size_t>(got);
  }
  return key;
}

}  // namespace

class Engine::Stepping {
 public:
  Stepping(EngineOptions options, CoordinatorState state)
      : options_(std::move(options)),
        state_(std::move(state)),
        planner_(state_.options.planner),
        stall_guard_(state_.options.limits, options_.clock->Now()) {
    RecordBuild(*options_.metrics);
    for (const auto& [id, job] : state_.jobs) RecordRecoveredJob(job, *options_.metrics);
    ActorSystemOptions system;
    system.threads = 1;
    system.max_actors = 1;
    system_ = std::make_unique<ActorSystem>(*options_.clock, std::move(system));
    StatusOr<Address> address = system_->Spawn("coordinator", std::make_unique<Shell>(*this));
    TROUPE_CHECK_OK(address.status());
    address_ = *address;
    Wake();
  }

  ~Stepping() { system_.reset(); }

  Status Post(Item item, bool bounded) {
    bool wake = false;
    {
      const std::lock_guard lock(mutex_);
      if (bounded && inbox_.size() >= kMaxInbox) {
        return ResourceExhausted("{} events wait for the coordinator", inbox_.size());
      }
      wake = inbox_.empty();
      inbox_.push_back(std::move(item));
    }
    if (wake) Wake();
    return OkStatus();
  }

  SessionId OpenSession(std::shared_ptr<SessionSink> sink) {
    const std::lock_guard lock(mutex_);
    const SessionId session = ++last_session_;
    sessions_[session] = std::move(sink);
    return session;
  }

  void ForgetSession(SessionId session) {
    const std::lock_guard lock(mutex_);
    sessions_.erase(session);
  }

  CallId AddCall(std::function<void(Reply)> reply, std::function<void(LogChunk)> chunk) {
    const std::lock_guard lock(mutex_);
    const CallId call = ++last_call_;
    if (reply) replies_[call] = std::move(reply);
    if (chunk) chunks_[call] = std::move(chunk);
    return call;
  }

  // Returns true if the call was not answered yet.
  bool ForgetCall(CallId call) {
    const std::lock_guard lock(mutex_);
    return replies_.erase(call) + chunks_.erase(call) > 0;
  }

  // Called on the engine's thread.
  void AddWatcher(const std::string& job, std::shared_ptr<WatchSink> sink) {
    watchers_[job].push_back(std::move(sink));
  }

  const Store& store() const { return *options_.store; }
  const Planner& planner() const { return planner_; }

 private:
  // The actor, which runs on one thread at a time.
  class Shell final : public Actor {
   public:
    explicit Shell(Stepping& stepping) : stepping_(stepping) {}
    Status Handle(AnyMessage message, Context& context) override { return stepping_.Run(context); }

   private:
    Stepping& stepping_;
  };

  void Wake() {
    // The mailbox cannot be full: one Poke is sent each time the inbox becomes non-empty.
    const Status sent = system_->Send(address_, AnyMessage(Poke{}));
    if (!sent.ok()) LogWarning("coordinator", "an event was dropped: {}", ToString(sent));
  }

  std::deque<Item> TakeItems() {
    const std::lock_guard lock(mutex_);
    std::deque<Item> items;
    while (!inbox_.empty() && items.size() < kMaxTogether) {
      items.push_back(std::move(inbox_.front()));
      inbox_.pop_front();
    }
    return items;
  }

  // Steps all queued events, then a tick if one is due, and sets the alarm for the next.
  Status Run(Context& context) {
    if (failed_) return OkStatus();
    while (true) {
      LookForStall(context.Now());
      std::deque<Item> items = TakeItems();
      if (items.empty()) break;
      for (Item& item : items) {
        if (auto* const query = std::get_if<ReadState>(&item)) {
          TROUPE_RETURN_IF_ERROR(Perform());
          (*query)(state_);
        } else {
          StepOne(std::move(std::get<What>(item)), context);
        }
      }
      TROUPE_RETURN_IF_ERROR(Perform());
    }
    const std::optional<MonotonicTime> due = NextDeadline(state_);
    LookForStall(context.Now());
    if (due && context.Now() >= std::max(*due, stall_guard_.ticks_from())) {
      StepOne(Tick{}, context);
      TROUPE_RETURN_IF_ERROR(Perform());
    }
    if (context.Now() >= fleet_metrics_time_) {
      RecordFleet(state_.fleet, &worker_series_, *options_.metrics);
      fleet_metrics_time_ = context.Now() + kFleetMetricsInterval;
    }
    SetAlarm(context);
    return OkStatus();
  }

  void LookForStall(MonotonicTime now) {
    if (!stall_guard_.Look(now)) return;
    LogWarning("coordinator",
               "this process was suspended: no worker or rank counts as lost for another {} s",
               ToSeconds(stall_guard_.ticks_from() - now));
  }

  void SetAlarm(Context& context) {
    // Fleet metrics are refreshed at their interval even if nothing else happens.
    const MonotonicTime tick =
        std::max(NextDeadline(state_).value_or(fleet_metrics_time_), stall_guard_.ticks_from());
    const MonotonicTime due = std::min(tick, fleet_metrics_time_);
    if (alarm_) context.CancelTimer(alarm_);
    alarm_ = context.SetTimer(std::max(due - context.Now(), kShortestAlarm), AnyMessage(Alarm{}));
  }

  void StepOne(What what, Context& context) {
    pending_.push_back(
        Step(state_, Event{context.Now(), context.WallNanoseconds(), std::move(what)}));
  }

  Status Fail(const Status& status) {
    failed_ = true;
    LogError("coordinator", "stops: {}", ToString(status));
    if (options_.on_failure) options_.on_failure(status);
    return status;
  }

  // Makes the pending effects durable together, then performs their other parts in order.
  Status Perform() {
    if (pending_.empty()) return OkStatus();
    CatalogBatch batch;
    for (const Effects& effects : pending_) {
      for (const std::string_view point : effects.failpoints_before) {
        if (const Status hit = HitFailpoint(point); !hit.ok()) return Fail(hit);
      }
      batch.Append(effects.writes);
    }
    if (const Status written = WriteCatalog(batch, options_.store); !written.ok()) {
      return Fail(Annotate(written, "the catalog cannot be written"));
    }
    std::vector<Effects> effects = std::move(pending_);
    pending_.clear();
    for (Effects& one : effects) {
      for (const std::string_view point : one.failpoints_after) {
        if (const Status hit = HitFailpoint(point); !hit.ok()) return Fail(hit);
      }
      Deliver(one);
    }
    return OkStatus();
  }

  void Deliver(Effects& effects) {
    for (const std::string& note : effects.notes) LogWarning("coordinator", "{}", note);
    // One key per group epoch suffices, because all StartRanks of an epoch leave in one Step.
    std::map<std::pair<std::string, uint64_t>, std::string> keys;
    for (ToWorker& message : effects.messages) {
      if (message.message.has_start_ranks()) {
        v1::StartRanks* const start = message.message.mutable_start_ranks();
        std::string& key = keys[{start->job(), start->group_epoch()}];
        if (key.empty()) key = RandomKey();
        start->set_group_key(key);
      }
      std::shared_ptr<SessionSink> sink;
      {
        const std::lock_guard lock(mutex_);
        const auto found = sessions_.find(message.session);
        if (found != sessions_.end()) sink = found->second;
      }
      if (sink) sink->Send(std::move(message.message), message.then_close);
    }
    for (Reply& reply : effects.replies) {
      if (auto done = Extract(replies_, reply.call)) done(std::move(reply));
    }
    std::set<std::string> touched;
    for (const JobUpdate& update : effects.updates) {
      touched.insert(update.job);
      Publish(update);
    }
    for (LogChunk& chunk : effects.logs) DeliverChunk(std::move(chunk));
    for (const Measurement& measurement : effects.measurements)
      RecordMeasurement(measurement, *options_.metrics);
    for (const std::string& id : effects.forgotten_jobs) {
      options_.metrics->RemoveSeries(label::JobName(id));
      watchers_.erase(id);
    }
    for (const std::string& id : touched) {
      const auto job = state_.jobs.find(id);
      if (job != state_.jobs.end()) RecordJob(job->second, *options_.metrics);
    }
  }

  template <typename Callback>
  Callback Extract(std::unordered_map<CallId, Callback>& calls, CallId call) {
    const std::lock_guard lock(mutex_);
    const auto found = calls.find(call);
    if (found == calls.end()) return nullptr;
    Callback callback = std::move(found->second);
    calls.erase(found);
    return callback;
  }

  void DeliverChunk(LogChunk chunk) {
    std::function<void(LogChunk)> deliver;
    {
      const std::lock_guard lock(mutex_);
      const auto found = chunks_.find(chunk.call);
      if (found == chunks_.end()) return;
      deliver = found->second;
      if (chunk.last) chunks_.erase(found);
    }
    deliver(std::move(chunk));
  }

  void Publish(const JobUpdate& update) {
    if (update.update.has_event()) {
      const v1::JobEvent& event = update.update.event();
      LogInfo("job", "job={} epoch={} step={} {} {}", update.job, event.group_epoch(), event.step(),
              event.event(), event.message());
    }
    const auto found = watchers_.find(update.job);
    if (found == watchers_.end()) return;
    std::erase_if(found->second, [&](const auto& sink) { return !sink->Push(update.update); });
    if (found->second.empty()) watchers_.erase(found);
  }

  const EngineOptions options_;
  CoordinatorState state_;  // the engine's thread
  const Planner planner_;
  StallGuard stall_guard_;        // the engine's thread
  std::vector<Effects> pending_;  // the engine's thread
  TimerId alarm_;                 // the engine's thread
  bool failed_ = false;           // the engine's thread
  MonotonicTime fleet_metrics_time_{};
  std::set<std::string> worker_series_;
  std::unordered_map<std::string, std::vector<std::shared_ptr<WatchSink>>> watchers_;

  std::mutex mutex_;  // guards the members below; never held during callbacks
  std::deque<Item> inbox_;
  SessionId last_session_ = 0;
  CallId last_call_ = 0;
  std::unordered_map<SessionId, std::shared_ptr<SessionSink>> sessions_;
  std::unordered_map<CallId, std::function<void(Reply)>> replies_;
  std::unordered_map<CallId, std::function<void(LogChunk)>> chunks_;

  std::unique_ptr<ActorSystem> system_;
  Address address_;
};

StatusOr<std::unique_ptr<Engine>> Engine::Start(EngineOptions options) {
  TROUPE_ASSIGN_OR_RETURN(const uint64_t leader_epoch, AdvanceLeaderEpoch(options.store));
  TROUPE_ASSIGN_OR_RETURN(const CatalogImage image, ReadCatalog(*options.store));
  CoordinatorState state = Recover(options.machine, image, leader_epoch, options.clock->Now());
  LogInfo("coordinator", "leader epoch {}: {} jobs, {} of them waiting or running", leader_epoch,
          state.jobs.size(),
          std::count_if(state.jobs.begin(), state.jobs.end(),
                        [](const auto& job) { return !HasEnded(job.second); }));
  return std::unique_ptr<Engine>(
      new Engine(std::make_unique<Stepping>(std::move(options), std::move(state))));
}

Engine::Engine(std::unique_ptr<Stepping> stepping) : stepping_(std::move(stepping)) {}
Engine::~Engine() = default;

SessionId Engine::OpenSession(std::shared_ptr<SessionSink> sink) {
  return stepping_->OpenSession(std::move(sink));
}

Status Engine::Receive(SessionId session, v1::WorkerMessage message) {
  return stepping_->Post(What(WorkerSaid{session, std::move(message)}), true);
}

void Engine::CloseSession(SessionId session) {
  stepping_->ForgetSession(session);
  TROUPE_CHECK_OK(stepping_->Post(What(SessionClosed{session}), false));
}

CallId Engine::Call(const MakeCall& make, std::function<void(Reply)> done) {
  const CallId call = stepping_->AddCall(done, nullptr);
  const Status posted = stepping_->Post(make(call), true);
  if (!posted.ok() && stepping_->ForgetCall(call)) done(Reply{call, posted, {}});
  return call;
}

CallId Engine::ReadLogs(const v1::ReadJobLogsRequest& request,
                        std::function<void(LogChunk)> chunk) {
  const CallId call = stepping_->AddCall(nullptr, chunk);
  const Status posted = stepping_->Post(What(ReadLogsCall{call, request}), true);
  if (!posted.ok() && stepping_->ForgetCall(call)) chunk(LogChunk{call, posted, {}, true});
  return call;
}

void Engine::Abandon(CallId call) {
  if (!stepping_->ForgetCall(call)) return;
  TROUPE_CHECK_OK(stepping_->Post(What(CallAbandoned{call}), false));
}

void Engine::Query(std::function<void(const CoordinatorState&)> read) {
  TROUPE_CHECK_OK(stepping_->Post(ReadState(std::move(read)), false));
}

void Engine::Watch(const std::string& job, std::shared_ptr<WatchSink> sink,
                   std::function<void(WatchStart)> start) {
  Query(
      [this, job, sink = std::move(sink), start = std::move(start)](const CoordinatorState& state) {
        WatchStart begin;
        const auto found = state.jobs.find(job);
        if (found == state.jobs.end()) {
          begin.status = NoSuchJob("name", job);
        } else {
          StatusOr<std::vector<v1::JobEvent>> events = ReadEvents(stepping_->store(), job);
          begin.status = events.status();
          if (events.ok()) begin.events = *std::move(events);
          begin.unflushed = found->second.unflushed;
          if (HasEnded(found->second)) begin.end = found->second.record.state();
        }
        const bool live = begin.status.ok() && begin.end == v1::JOB_STATE_UNSPECIFIED;
        start(std::move(begin));
        if (live) stepping_->AddWatcher(job, sink);
      });
}

const Store& Engine::store() const { return stepping_->store(); }
const Planner& Engine::planner() const { return stepping_->planner(); }

}  // namespace troupe
