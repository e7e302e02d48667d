#include "coordinator/machine.h"

#include <algorithm>
#include <utility>

#include "coordinator/attempts.h"
#include "coordinator/group.h"
#include "coordinator/progress.h"
#include "coordinator/rebuild.h"
#include "coordinator/recovery.h"
#include "coordinator/settled.h"
#include "plan/violation.h"

namespace troupe {
namespace {

constexpr size_t kMaxRequestIdBytes = 256;
constexpr auto kLogsLimit = std::chrono::seconds(10);

class Stepper {
 public:
  Stepper(CoordinatorState& state, const Event& event, Effects& effects)
      : state_(state), turn_{event.now,     event.wall_ns, state.leader_epoch,
                             state.options, state.fleet,   effects} {}

  void operator()(const Tick&) {
    std::vector<SessionId> closed;
    const std::vector<std::string> lost =
        ExpireWorkers(turn_.limits(), turn_.now, &state_.fleet, &closed, &turn_.effects.writes);
    for (const SessionId session : closed) {
      Refuse(session, fmt::format("session {}", session),
             DeadlineExceeded("nothing was heard for {} s", ToSeconds(turn_.limits().lease)), true);
    }
    for (const std::string& worker : lost) {
      ForEachGroupOn(
          worker, [&](Job& job) { OnWorkerLost(job, worker, "nothing was heard of it", turn_); });
    }
    const std::set<std::string> active = state_.active;
    for (const std::string& id : active) {
      OnJobTime(state_.jobs.at(id), turn_);
      Touch(id);
    }
    std::erase_if(state_.pending_logs, [this](const auto& entry) {
      const PendingLogs& logs = entry.second;
      if (turn_.now < logs.deadline) return false;
      turn_.effects.logs.push_back(
          {logs.call, DeadlineExceeded("{} workers did not answer", logs.outstanding), {}, true});
      return true;
    });
    ExpireTraces(&state_.traces, turn_);
    if (!lost.empty()) turn_.reschedule = true;
  }

  void operator()(const SessionClosed& event) {
    const std::string worker = CloseSession(event.session, turn_.now, &state_.fleet);
    if (worker.empty()) return;
    // Its ranks may live on until the reconnect grace is over, unless their epoch is failing
    // anyway.
    ForEachGroupOn(worker, [&](Job& job) {
      if (job.group->phase == GroupPhase::kSettling) {
        OnWorkerLost(job, worker, "its stream closed and the other ranks lost it", turn_);
      }
    });
  }

  void operator()(const WorkerSaid& event) {
    const v1::WorkerMessage& message = event.message;
    if (message.has_hello()) {
      OnHello(message.hello(), event.session);
      return;
    }
    Worker* const worker = FindBySession(event.session, &state_.fleet);
    // Nothing counts before Hello or after another stream took over, nor what was meant for a
    // former leader.
    if (worker == nullptr) return;
    if (message.leader_epoch() != 0 && message.leader_epoch() != state_.leader_epoch) return;
    worker->last_message = turn_.now;
    const std::string name = worker->name;
    switch (message.message_case()) {
      case v1::WorkerMessage::kHeartbeat: {
        worker->memory_bytes = message.heartbeat().memory_bytes();
        v1::CoordinatorMessage ack;
        ack.mutable_heartbeat_ack();
        SendToWorker(name, std::move(ack), turn_);
        return;
      }
      case v1::WorkerMessage::kRankAddress:
        return OnRankMessage(message.rank_address(), name, OnRankAddress);
      case v1::WorkerMessage::kRankReady:
        return OnRankMessage(message.rank_ready(), name, OnRankReady);
      case v1::WorkerMessage::kStepReport:
        return OnRankMessage(message.step_report(), name, OnStepReport);
      case v1::WorkerMessage::kShardDone:
        if (message.shard_done().incarnation() != worker->incarnation) return;
        return OnRankMessage(message.shard_done(), name,
                             [&](Job& job, const v1::ShardDone& vote, Turn& turn) {
                               OnShardDone(job, vote, name, turn);
                             });
      case v1::WorkerMessage::kShardFailed:
        return OnRankMessage(message.shard_failed(), name, OnShardFailed);
      case v1::WorkerMessage::kManifestDone: {
        Job* const job = FindJob(message.manifest_done().job());
        if (job == nullptr ||
            !IsCurrent(*job, message.manifest_done().group_epoch(), 0, name, turn_))
          return;
        OnManifestDone(*job, message.manifest_done(), turn_);
        Touch(job->id());
        return;
      }
      case v1::WorkerMessage::kRankFailed:
        return OnRankMessage(message.rank_failed(), name,
                             [&](Job& job, const v1::RankFailed& failed, Turn& turn) {
                               OnRankFailed(job, failed, name, turn);
                             });
      case v1::WorkerMessage::kRankStopped: {
        const v1::RankStopped& stopped = message.rank_stopped();
        if (ReleaseRank(name, stopped.job(), stopped.group_epoch(), stopped.rank(), &state_.fleet,
                        &turn_.effects.writes)) {
          turn_.reschedule = true;
        }
        OnRankMessage(stopped, name, [&](Job& job, const v1::RankStopped& end, Turn& turn) {
          OnRankStopped(job, end, name, turn);
        });
        AskAgainAfterEnd(stopped, name, state_.traces, turn_);
        // It may have been the last that could write into attempts of its epoch.
        if (const Job* const job = FindJob(stopped.job())) SendDeletions(*job, turn_);
        return;
      }
      case v1::WorkerMessage::kDeviceCondemned:
        if (!CondemnDevice(message.device_condemned(), worker)) return;
        turn_.effects.notes.push_back(fmt::format("a device of {} is condemned: {}", name,
                                                  Shortened(message.device_condemned().reason())));
        return;
      case v1::WorkerMessage::kCheckpointDeleted: {
        Job* const job = FindJob(message.checkpoint_deleted().job());
        if (job != nullptr) OnCheckpointDeleted(*job, message.checkpoint_deleted(), turn_);
        return;
      }
      case v1::WorkerMessage::kCheckpointVerified: {
        Job* const job = FindJob(message.checkpoint_verified().job());
        if (job != nullptr) OnCheckpointVerified(*job, message.checkpoint_verified(), turn_);
        return;
      }
      case v1::WorkerMessage::kLogLines:
        OnLogLines(message.log_lines());
        return;
      case v1::WorkerMessage::kRankTrace:
        return OnRankTrace(message.rank_trace(), &state_.traces, turn_);
      case v1::WorkerMessage::kHello:
      case v1::WorkerMessage::MESSAGE_NOT_SET:
        return;
    }
  }

  void operator()(const CreateJobCall& event) {
    const Status status = Create(event);
    if (!status.ok()) ReplyWithError(event.call, status, turn_);
  }

  void operator()(const CancelJobCall& event) {
    Job* const job = FindJobOrReply("name", event.request.name(), event.call);
    if (job == nullptr) return;
    CancelJob(*job, event.call, event.request.checkpoint(), turn_);
    Touch(job->id());
  }

  void operator()(const ResumeJobCall& event) {
    Job* const job = FindJobOrReply("name", event.request.name(), event.call);
    if (job == nullptr) return;
    const Status status = ResumeJob(*job, event.request.overrides(), turn_);
    Touch(job->id());
    if (!status.ok()) return ReplyWithError(event.call, status, turn_);
    ReplyWithJob(*job, event.call, turn_);
  }

  void operator()(const CreateCheckpointCall& event) {
    Job* const job = FindJobOrReply("job", event.request.job(), event.call);
    if (job == nullptr) return;
    if (!job->has_folder()) {
      ReplyWithError(event.call,
                     FailedPrecondition("job {}: its checkpoint.folder is empty", job->id()),
                     turn_);
    } else if (!job->group || job->group->phase != GroupPhase::kRunning) {
      ReplyWithError(
          event.call,
          FailedPrecondition("job {} is {}, not RUNNING", job->id(), StateName(ShownState(*job))),
          turn_);
    } else {
      JoinOrRequestCheckpoint(*job, turn_).callers.push_back(event.call);
      Touch(job->id());
    }
  }

  void operator()(const PinCheckpointCall& event) {
    Job* const job = FindJobOrReply("job", event.request.job(), event.call);
    if (job == nullptr) return;
    const Status status = PinCheckpoint(*job, event.request, event.call, turn_);
    if (!status.ok()) ReplyWithError(event.call, status, turn_);
  }

  void operator()(const RebuildJobCall& event) {
    const std::string& name = event.request.job().name();
    StatusOr<Job> job =
        state_.jobs.contains(name)
            ? RefuseField(StatusCode::kInvalidArgument, "name",
                          "is {}, which the catalog has already", name)
            : RebuildJob(event.request, state_.last_sequence + 1, turn_);
    if (!job.ok()) return ReplyWithError(event.call, job.status(), turn_);
    ++state_.last_sequence;
    Take(*std::move(job), event.call);
  }

  void operator()(const ReadLogsCall& event) {
    const Job* const job = FindJob(JobId(event.request.name()));
    Status status = job == nullptr ? NoSuchJob("name", event.request.name()) : OkStatus();
    const bool one = event.request.has_rank();
    if (status.ok() && one &&
        (event.request.rank() < 0 || event.request.rank() >= job->plan.ranks_size())) {
      status = RefuseField(StatusCode::kNotFound, "rank", "is {}; job {} has ranks 0 to {}",
                           event.request.rank(), job->id(), job->plan.ranks_size() - 1);
    }
    if (!status.ok()) {
      turn_.effects.logs.push_back({event.call, status, {}, true});
      return;
    }
    std::set<std::string> workers;
    std::set<std::string> away;
    for (const v1::RankPlacement& placement : job->last_group.ranks()) {
      const Worker* const worker = FindWorker(placement.worker(), state_.fleet);
      if (one && placement.rank() != event.request.rank()) continue;
      (worker != nullptr && worker->session != 0 ? workers : away).insert(placement.worker());
    }
    if (workers.empty()) {
      // A job that never ran has logged nothing.
      status = away.empty() ? OkStatus()
                            : FailedPrecondition("the lines of job {} are on {}, not connected now",
                                                 job->id(), fmt::join(away, ", "));
      turn_.effects.logs.push_back({event.call, status, {}, true});
      return;
    }
    if (!away.empty()) {
      turn_.effects.logs.push_back(
          {event.call,
           OkStatus(),
           {fmt::format("… the lines on {} are left out: not connected now",
                        fmt::join(away, ", "))},
           false});
    }
    const uint64_t request = ++state_.last_log_request;
    state_.pending_logs[request] = {event.call, static_cast<int>(workers.size()),
                                    turn_.now + kLogsLimit};
    v1::CoordinatorMessage message;
    message.mutable_read_logs()->set_request(request);
    message.mutable_read_logs()->set_job(job->id());
    message.mutable_read_logs()->set_rank(one ? event.request.rank() : -1);
    for (const std::string& worker : workers) SendToWorker(worker, message, turn_);
  }

  void operator()(const TraceJobCall& event) {
    const Job* const job = FindJobOrReply("name", event.request.name(), event.call);
    if (job != nullptr) AskForTrace(*job, event.call, event.request, &state_.traces, turn_);
  }

  void operator()(const CallAbandoned& event) {
    AbandonTrace(event.call, &state_.traces);
    for (auto& [id, job] : state_.jobs) {
      std::erase(job.cancel_callers, event.call);
      for (auto& [number, attempt] : job.attempts) std::erase(attempt.callers, event.call);
    }
    std::erase_if(state_.pending_logs,
                  [&](const auto& entry) { return entry.second.call == event.call; });
  }

  // Places what can be placed. The queue must be up to date (Touch).
  void Schedule() {
    if (!turn_.reschedule) return;
    turn_.reschedule = false;
    for (const std::string& id : PlaceQueuedJobs(&state_.queue, &state_.jobs, turn_)) Touch(id);
  }

 private:
  Job* FindJob(const std::string& id) {
    const auto job = state_.jobs.find(id);
    return job == state_.jobs.end() ? nullptr : &job->second;
  }

  Job* FindJobOrReply(const char* field, const std::string& name, CallId call) {
    Job* const job = FindJob(JobId(name));
    if (job == nullptr) ReplyWithError(call, NoSuchJob(field, name), turn_);
    return job;
  }

  // Brings the queue and the set of jobs with deadlines up to date with what happened to `id`.
  void Touch(const std::string& id) {
    const Job& job = state_.jobs.at(id);
    if (IsQueued(job)) {
      state_.queue.insert(QueueKeyOf(job));
    } else {
      state_.queue.erase(QueueKeyOf(job));
    }
    if (NextJobDeadline(job, state_.options)) {
      state_.active.insert(id);
    } else {
      state_.active.erase(id);
    }
  }

  template <typename Visit>
  void ForEachGroupOn(const std::string& worker, Visit visit) {
    const std::set<std::string> active = state_.active;  // every job with a group has a deadline
    for (const std::string& id : active) {
      Job& job = state_.jobs.at(id);
      if (!job.group) continue;
      const bool concerned = std::any_of(
          job.plan.ranks().begin(), job.plan.ranks().end(),
          [&](const v1::RankPlacement& placement) { return placement.worker() == worker; });
      if (!concerned) continue;
      visit(job);
      Touch(id);
    }
  }

  // Hands a message about one rank to its job, unless it is stale.
  template <typename Message, typename Handle>
  void OnRankMessage(const Message& message, const std::string& worker, Handle handle) {
    Job* const job = FindJob(message.job());
    if (job == nullptr || !IsCurrent(*job, message.group_epoch(), message.rank(), worker, turn_))
      return;
    handle(*job, message, turn_);
    Touch(job->id());
  }

  // `whom`: for the log.
  void Refuse(SessionId session, const std::string& whom, const Status& status, bool retry) {
    turn_.effects.notes.push_back(fmt::format("{} is refused: {}", whom, ToString(status)));
    v1::CoordinatorMessage message;
    message.set_leader_epoch(state_.leader_epoch);
    message.mutable_refused()->set_code(static_cast<int>(status.code()));
    message.mutable_refused()->set_message(std::string(Message(status)));
    message.mutable_refused()->set_retry(retry);
    turn_.effects.messages.push_back({session, std::move(message), true});
  }

  void OnHello(const v1::Hello& hello, SessionId session) {
    const HelloOutcome outcome =
        AcceptHello(hello, session, state_.leader_epoch, turn_.limits(), turn_.now, &state_.fleet);
    if (!outcome.refused.ok()) {
      Refuse(session,
             fmt::format("worker \"{}\" on host \"{}\", incarnation {}, protocol version {},",
                         Shortened(hello.name()), Shortened(hello.host()), hello.incarnation(),
                         hello.protocol_version()),
             outcome.refused, outcome.retry);
      return;
    }
    if (outcome.replaced_session != 0 && outcome.replaced_session != session) {
      Refuse(outcome.replaced_session,
             fmt::format("the older stream of worker \"{}\"", hello.name()),
             Aborted("worker {} has opened another stream", hello.name()), true);
    }
    v1::CoordinatorMessage welcome;
    welcome.mutable_welcome()->set_leader_epoch(state_.leader_epoch);
    welcome.mutable_welcome()->set_heartbeat_seconds(ToSeconds(turn_.limits().heartbeat));
    welcome.mutable_welcome()->set_lease_seconds(ToSeconds(turn_.limits().lease));
    welcome.mutable_welcome()->set_abort_seconds(ToSeconds(turn_.limits().abort));
    SendToWorker(hello.name(), std::move(welcome), turn_);
    ReleaseNotHeld(hello.name(), hello, &state_.fleet, &turn_.effects.writes);
    StopStaleGroups(hello);
    ForEachGroupOn(hello.name(), [&](Job& job) {
      if (outcome.new_life) {
        OnWorkerLost(job, hello.name(), "it died and came back as a new life", turn_);
      } else {
        ResendTo(job, hello.name(), hello, turn_);
      }
    });
    // What was asked for while it was away, or before its ranks had ended.
    for (auto& [id, job] : state_.jobs) SendFileWorkAgain(job, hello.name(), turn_);
    turn_.reschedule = true;
  }

  void StopStaleGroups(const v1::Hello& hello) {
    for (const v1::HeldGroup& held : hello.held()) {
      const Job* const job = FindJob(held.job());
      if (job != nullptr && job->group && job->group->epoch == held.group_epoch()) continue;
      v1::CoordinatorMessage message;
      message.mutable_stop_ranks()->set_job(held.job());
      message.mutable_stop_ranks()->set_group_epoch(held.group_epoch());
      message.mutable_stop_ranks()->set_reason("its group epoch has ended");
      SendToWorker(hello.name(), std::move(message), turn_);
    }
  }

  void OnLogLines(const v1::LogLines& lines) {
    const auto pending = state_.pending_logs.find(lines.request());
    if (pending == state_.pending_logs.end()) return;
    if (lines.last()) --pending->second.outstanding;
    const bool last = pending->second.outstanding == 0;
    turn_.effects.logs.push_back(
        {pending->second.call, OkStatus(), {lines.lines().begin(), lines.lines().end()}, last});
    if (last) state_.pending_logs.erase(pending);
  }

  Status Create(const CreateJobCall& event) {
    const std::string& request_id = event.request.request_id();
    if (request_id.size() > kMaxRequestIdBytes) {
      return RefuseField(StatusCode::kInvalidArgument, "request_id",
                         "has {} bytes, at most {} are allowed", request_id.size(),
                         kMaxRequestIdBytes);
    }
    if (!request_id.empty()) {
      const auto known = state_.requests.find(request_id);
      if (known != state_.requests.end()) {
        ReplyWithJob(state_.jobs.at(known->second), event.call, turn_);
        return OkStatus();
      }
    }
    const Planner& planner = state_.options.planner;
    v1::JobSpec stated = event.request.job();
    FillCheckpointFolder(state_.options, &stated);
    TROUPE_ASSIGN_OR_RETURN(v1::JobSpec spec, planner.complete(stated));
    if (state_.jobs.contains(spec.name())) {
      return RefuseField(StatusCode::kInvalidArgument, "name",
                         "is {}, which another job has already", spec.name());
    }
    TROUPE_ASSIGN_OR_RETURN(v1::Plan plan, planner.make_plan(spec, nullptr));
    Job job = CreateJob(std::move(spec), std::move(plan), ++state_.last_sequence, turn_);
    if (!request_id.empty()) {
      turn_.effects.writes.PutRequest(request_id, job.id());
      state_.requests[request_id] = job.id();
    }
    Take(std::move(job), event.call);
    return OkStatus();
  }

  // Keeps a job that is recorded in the turn's writes, and replies with it.
  void Take(Job job, CallId call) {
    turn_.effects.failpoints_after.push_back("catalog.job.recorded");
    ReplyWithJob(job, call, turn_);
    const std::string id = job.id();
    state_.jobs.emplace(id, std::move(job));
    Touch(id);
  }

  CoordinatorState& state_;
  Turn turn_;
};

}  // namespace

CoordinatorState Recover(CoordinatorOptions options, const CatalogImage& image,
                         uint64_t leader_epoch, MonotonicTime now) {
  CoordinatorState state;
  state.options = std::move(options);
  state.leader_epoch = leader_epoch;
  state.fleet.leases = image.leases;
  state.requests = image.requests;
  // A worker that never comes back is forgotten like any other, and its leases with it.
  for (const auto& [key, lease] : image.leases) {
    Worker& worker = state.fleet.workers[key.first];
    worker.name = key.first;
    worker.incarnation = std::max(worker.incarnation, lease.incarnation());
    worker.last_message = now;
    worker.lost = true;
  }
  for (const auto& [id, stored] : image.jobs) {
    Job job = RecoverJob(stored.record, stored.spec, stored.plan, stored.group, stored.checkpoints,
                         state.options.limits, now);
    job.tally = stored.tally;
    state.last_sequence = std::max(state.last_sequence, job.record.sequence());
    if (IsQueued(job)) state.queue.insert(QueueKeyOf(job));
    if (NextJobDeadline(job, state.options)) state.active.insert(id);
    state.jobs.emplace(id, std::move(job));
  }
  return state;
}

Effects Step(CoordinatorState& state, const Event& event) {
  Effects effects;
  Stepper stepper(state, event, effects);
  std::visit(stepper, event.what);
  stepper.Schedule();
  return effects;
}

std::optional<MonotonicTime> NextDeadline(const CoordinatorState& state) {
  std::optional<MonotonicTime> next = NextExpiry(state.options.limits, state.fleet);
  const auto at = [&next](MonotonicTime time) {
    if (!next || time < *next) next = time;
  };
  for (const std::string& id : state.active) {
    const std::optional<MonotonicTime> due = NextJobDeadline(state.jobs.at(id), state.options);
    if (due) at(*due);
  }
  for (const auto& [request, pending] : state.pending_logs) at(pending.deadline);
  if (const auto due = NextTraceDeadline(state.traces)) at(*due);
  return next;
}

}  // namespace troupe
