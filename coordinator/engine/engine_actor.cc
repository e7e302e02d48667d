#include "coordinator/engine/engine_actor.h"

#include <algorithm>
#include <map>

#include "base/failpoint.h"
#include "base/log.h"
#include "coordinator/state/job_state.h"

namespace troupe {
namespace {

// Limit of events that share one synced write.
constexpr size_t kMaxTogether = 256;
// Shortest interval between two checks of deadlines.
constexpr Duration kShortestAlarm = std::chrono::milliseconds(1);
constexpr Duration kWorkerFiguresInterval = std::chrono::milliseconds(500);

struct Alarm {
  static constexpr std::string_view kMessageName = "engine.alarm";
};

template <typename Callback>
Callback Extract(std::unordered_map<CallId, Callback>& calls, CallId call) {
  const auto found = calls.find(call);
  if (found == calls.end()) return nullptr;
  Callback callback = std::move(found->second);
  calls.erase(found);
  return callback;
}

}  // namespace

Status EngineActor::Start(Context& context) {
  stall_guard_.emplace(state_.options.limits, context.Now());
  Measured found;
  for (const auto& [id, job] : state_.jobs) found.recovered.push_back(RecoveredFiguresOf(job));
  SendMeasured(std::move(found), {}, context);
  return OkStatus();
}

Status EngineActor::Handle(AnyMessage message, Context& context) {
  LookForStall(context.Now());
  if (auto* const event = message.As<EngineEvent>()) {
    if (const auto* const closed = std::get_if<SessionClosed>(&event->what)) {
      sessions_.erase(closed->session);
    } else if (const auto* const abandoned = std::get_if<CallAbandoned>(&event->what)) {
      if (replies_.erase(abandoned->call) + chunks_.erase(abandoned->call) == 0) {
        return OkStatus();  // it was answered
      }
    }
    StepOne(std::move(event->what), context);
  } else if (auto* const call = message.As<EngineCall>()) {
    if (call->done) replies_[call->call] = std::move(call->done);
    if (call->chunk) chunks_[call->call] = std::move(call->chunk);
    StepOne(std::move(call->what), context);
  } else if (auto* const query = message.As<EngineQuery>()) {
    TROUPE_RETURN_IF_ERROR(Perform(context));
    query->read(state_);
  } else if (auto* const watch = message.As<EngineWatch>()) {
    TROUPE_RETURN_IF_ERROR(Perform(context));
    Watch(std::move(*watch), context);
  } else if (auto* const opened = message.As<SessionOpened>()) {
    sessions_[opened->session] = std::move(opened->sink);
  } else if (message.As<Alarm>() != nullptr) {
    alarm_ = {};
  }
  return pending_.size() < kMaxTogether ? OkStatus() : Perform(context);
}

Status EngineActor::HandleBatchEnd(Context& context) {
  TROUPE_RETURN_IF_ERROR(Perform(context));
  LookForStall(context.Now());
  const std::optional<MonotonicTime> due = NextDeadline(state_);
  // A tick is for when no event waits; what waits may be what the deadline is about.
  if (due && context.Now() >= std::max(*due, stall_guard_->ticks_from()) &&
      context.waiting() == 0) {
    StepOne(Tick{}, context);
    TROUPE_RETURN_IF_ERROR(Perform(context));
  }
  if (context.Now() >= worker_figures_time_) {
    SendFleetFigures(context);
    worker_figures_time_ = context.Now() + kWorkerFiguresInterval;
  }
  SetAlarm(context);
  return OkStatus();
}

void EngineActor::SendFleetFigures(Context& context) {
  Measured measured;
  measured.workers = FiguresOf(state_.fleet);
  measured.control = ControlFiguresOf(state_);
  if (options_.watcher_count) measured.control->watchers = *options_.watcher_count;
  measured.control->catalog = options_.store->Figures();
  measured.control->turns = turns_;
  measured.control->catalog_writes = catalog_writes_;
  // Figures that were dropped are contained in the next ones.
  if (!SendMeasured(std::move(measured), {}, context)) return;
  turns_ = {};
  catalog_writes_ = {};
}

void EngineActor::LookForStall(MonotonicTime now) {
  if (!stall_guard_->Look(now)) return;
  LogWarning("coordinator",
             "this process was suspended: no worker or rank counts as lost for another {} s",
             ToSeconds(stall_guard_->ticks_from() - now));
}

void EngineActor::SetAlarm(Context& context) {
  // The workers' figures are refreshed at their interval even if nothing else happens.
  const MonotonicTime tick =
      std::max(NextDeadline(state_).value_or(worker_figures_time_), stall_guard_->ticks_from());
  const MonotonicTime time = std::min(tick, worker_figures_time_);
  if (alarm_ && time == alarm_time_) return;
  context.CancelTimer(alarm_);
  alarm_time_ = time;
  alarm_ = context.SetTimer(std::max(time - context.Now(), kShortestAlarm), AnyMessage(Alarm{}));
}

void EngineActor::StepOne(decltype(Event::what) what, Context& context) {
  if (pending_.empty()) turn_begin_ = context.Now();
  pending_.push_back(
      Step(state_, Event{context.Now(), context.WallNanoseconds(), std::move(what)}));
}

Status EngineActor::Perform(Context& context) {
  if (pending_.empty()) return OkStatus();
  CatalogBatch batch;
  for (const Effects& effects : pending_) {
    for (const std::string_view point : effects.failpoints_before) {
      TROUPE_RETURN_IF_ERROR(HitFailpoint(point));
    }
    batch.Append(effects.writes);
  }
  const MonotonicTime write_begin = context.Now();
  if (const Status written = WriteCatalog(batch, options_.store); !written.ok()) {
    return Annotate(written, "the catalog cannot be written");
  }
  if (!batch.empty()) catalog_writes_.Add(ToSeconds(context.Now() - write_begin));
  std::vector<Effects> performed = std::move(pending_);
  pending_.clear();
  Updates updates;
  Measured measured;
  std::set<std::string> touched;
  for (Effects& effects : performed) {
    for (const std::string_view point : effects.failpoints_after) {
      TROUPE_RETURN_IF_ERROR(HitFailpoint(point));
    }
    for (const RefusedPath& path : effects.refused_paths) {
      if (options_.record_path) options_.record_path(path);
    }
    for (const std::string& note : effects.notes) LogWarning("coordinator", "{}", note);
    SendMessages(effects.messages);
    for (Reply& reply : effects.replies) {
      if (auto done = Extract(replies_, reply.call)) done(std::move(reply));
    }
    for (JobUpdate& update : effects.updates) {
      touched.insert(update.job);
      updates.updates.push_back(std::move(update));
    }
    for (LogChunk& chunk : effects.logs) DeliverChunk(std::move(chunk));
    for (Measurement& measurement : effects.measurements) {
      if (const auto* const start = std::get_if<StartMeasured>(&measurement)) {
        touched.insert(start->job);
      }
      measured.measurements.push_back(std::move(measurement));
    }
    if (effects.forgotten_jobs.empty()) continue;
    // A later event may create a job of the same name.
    updates.forgotten_jobs = effects.forgotten_jobs;
    measured.forgotten_jobs = std::move(effects.forgotten_jobs);
    Publish(std::exchange(updates, {}), context);
    SendMeasured(std::exchange(measured, {}), std::exchange(touched, {}), context);
  }
  Publish(std::move(updates), context);
  SendMeasured(std::move(measured), touched, context);
  turns_.Add(ToSeconds(context.Now() - turn_begin_));
  return OkStatus();
}

void EngineActor::SendMessages(std::vector<ToWorker>& messages) {
  // One key per group epoch suffices, because all StartRanks of an epoch leave in one Step.
  std::map<std::pair<std::string, uint64_t>, std::string> keys;
  for (ToWorker& message : messages) {
    if (message.message.has_start_ranks()) {
      v1::StartRanks* const start = message.message.mutable_start_ranks();
      std::string& key = keys[{start->job(), start->group_epoch()}];
      if (key.empty()) key = options_.make_group_key();
      start->set_group_key(key);
    }
    const auto session = sessions_.find(message.session);
    if (session == sessions_.end()) continue;
    session->second->Send(std::move(message.message), message.then_close);
  }
}

void EngineActor::DeliverChunk(LogChunk chunk) {
  const auto found = chunks_.find(chunk.call);
  if (found == chunks_.end()) return;
  const std::function<void(LogChunk)> deliver = found->second;
  if (chunk.last) chunks_.erase(found);
  deliver(std::move(chunk));
}

void EngineActor::Watch(EngineWatch watch, Context& context) {
  WatchStart start;
  const auto found = state_.jobs.find(watch.job);
  if (found == state_.jobs.end()) {
    start.status = NoSuchJob("name", watch.job);
  } else {
    start.unflushed = found->second.unflushed;
    if (HasEnded(found->second)) start.end = found->second.record.state();
  }
  const std::shared_ptr<WatchSink> sink = watch.sink;
  const Status sent = context.Send(
      options_.watchers,
      AnyMessage(Subscription{std::move(watch.job), std::move(watch.sink), std::move(start)}));
  if (!sent.ok()) sink->End(ResourceExhausted("too many updates wait for watchers: try again"));
}

void EngineActor::Publish(Updates updates, Context& context) {
  for (const JobUpdate& update : updates.updates) {
    if (!update.update.has_event()) continue;
    const v1::JobEvent& event = update.update.event();
    LogInfo("job", "job={} epoch={} step={} {} {}", update.job, event.group_epoch(), event.step(),
            event.event(), event.message());
  }
  if (updates.updates.empty() && updates.forgotten_jobs.empty()) return;
  if (context.Send(options_.watchers, AnyMessage(std::move(updates))).ok()) {
    updates_lost_ = false;
  } else if (!std::exchange(updates_lost_, true)) {
    // NOT_FOUND means that the fan-out has ended, and this process is about to.
    context.SendAdmitted(options_.watchers, AnyMessage(UpdatesLost{})).IgnoreError();
  }
}

bool EngineActor::SendMeasured(Measured measured, const std::set<std::string>& touched,
                               Context& context) {
  if (!options_.metrics) return true;
  if (figures_lost_) {
    for (const auto& [id, job] : state_.jobs) measured.jobs.push_back(FiguresOf(job));
  } else {
    for (const std::string& id : touched) {
      const auto job = state_.jobs.find(id);
      if (job != state_.jobs.end()) measured.jobs.push_back(FiguresOf(job->second));
    }
  }
  for (std::string& job : measured.forgotten_jobs) forgotten_unsent_.push_back(std::move(job));
  measured.forgotten_jobs = forgotten_unsent_;
  measured.dropped = measurements_dropped_;
  if (measured.measurements.empty() && measured.forgotten_jobs.empty() && measured.jobs.empty() &&
      measured.recovered.empty() && !measured.workers) {
    return true;
  }
  const size_t count = measured.measurements.size();
  if (context.Send(options_.metrics, AnyMessage(std::move(measured))).ok()) {
    figures_lost_ = false;
    measurements_dropped_ = 0;
    forgotten_unsent_.clear();
    return true;
  }
  if (!std::exchange(figures_lost_, true)) {
    LogWarning("coordinator", "measurements are dropped: too many wait for the metrics");
  }
  measurements_dropped_ += count;
  return false;
}

}  // namespace troupe
