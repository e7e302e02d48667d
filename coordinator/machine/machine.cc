#include "coordinator/machine/machine.h"

#include <memory>
#include <string_view>
#include <utility>

#include "base/deadline.h"
#include "coordinator/faults/host_faults.h"
#include "coordinator/job/attempts.h"
#include "coordinator/job/cancel.h"
#include "coordinator/job/commit_verification.h"
#include "coordinator/job/group.h"
#include "coordinator/job/images.h"
#include "coordinator/job/job_creation.h"
#include "coordinator/job/job_messages.h"
#include "coordinator/job/job_record.h"
#include "coordinator/job/job_timers.h"
#include "coordinator/job/kept_checkpoints.h"
#include "coordinator/job/lifecycle.h"
#include "coordinator/job/move.h"
#include "coordinator/job/progress.h"
#include "coordinator/job/rebuild.h"
#include "coordinator/job/recovery.h"
#include "coordinator/job/resume.h"
#include "coordinator/machine/admission.h"
#include "coordinator/machine/drained_workers.h"
#include "coordinator/machine/job_removal.h"
#include "coordinator/machine/log_reads.h"
#include "coordinator/machine/message_authority.h"
#include "coordinator/machine/scheduler.h"
#include "coordinator/state/job_state.h"
#include "plan/job/job_name.h"
#include "plan/job/stated_keys.h"
#include "plan/job/violation.h"

namespace troupe {
namespace {

constexpr size_t kMaxRequestIdBytes = 256;
// Number of texts of which refusals are counted.
constexpr size_t kMaxRefusals = 1024;

class Stepper {
 public:
  Stepper(CoordinatorState& state, const Event& event, Effects& effects)
      : state_(state), turn_{event.now,     event.wall_ns, state.leader_epoch,
                             state.options, state.fleet,   effects} {}

  void operator()(const Tick&);

  void operator()(const SessionClosed& event) {
    const std::string worker = CloseSession(event.session, turn_.now, &state_.fleet);
    if (worker.empty()) return;
    turn_.reschedule = true;
    // The worker's ranks may continue until the reconnect grace is over, unless their epoch is
    // failing anyway.
    ForEachGroupOn(worker, [&](Job& job) {
      if (job.group->phase == GroupPhase::kDraining) {
        OnWorkerLost(job, worker,
                     "its stream closed, and the other ranks lost their connection to it", turn_);
      }
    });
  }

  void operator()(const WorkerReported& event) {
    const v1::WorkerMessage& message = event.message;
    if (message.has_hello()) {
      OnHello(message.hello(), event.session);
      return;
    }
    Worker* const worker = FindBySession(event.session, &state_.fleet);
    // Ignores messages before Hello, after another stream replaced this one, and for a former
    // leader.
    if (worker == nullptr) return;
    if (message.leader_epoch() != 0 && message.leader_epoch() != state_.leader_epoch) return;
    worker->last_message = turn_.now;
    if (IsHeeded(message, *worker)) OnWorkerMessage(message, *worker);
  }

  void operator()(const CreateJobCall& event) {
    const Status status = Create(event);
    if (!status.ok()) ReplyWithError(event.call, status, turn_);
  }

  void operator()(const CancelJobCall& event) {
    Job* const job = FindJobOrReply("name", event.request.name(), event.call);
    if (job == nullptr) return;
    CancelJob(*job, event, turn_);
    Touch(job->id());
  }

  void operator()(const DeleteJobCall& event) {
    Job* const job = FindJobOrReply("name", event.request.name(), event.call);
    if (job != nullptr) DeleteJob(*job, event, state_, turn_);
  }

  void operator()(const ResumeJobCall& event) {
    Job* const job = FindJobOrReply("name", event.request.name(), event.call);
    if (job == nullptr) return;
    Status status = CheckResumable(*job, event.request.overrides());
    if (status.ok()) status = CheckAdmission(state_, job->id(), job->record.creator(), turn_.now);
    if (status.ok()) status = Resume(*job, event);
    Touch(job->id());
    if (!status.ok()) return ReplyWithError(event.call, status, turn_);
    CountSubmission(job->id(), turn_.now, &state_);
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
    Touch(job->id());
  }

  void operator()(const LiftQuarantineCall& event) {
    for (auto& [id, job] : state_.jobs) {
      if (!HasCheckpointAt(job, event.request.path())) continue;
      const Status status = LiftQuarantine(job, event.request, event.call, turn_);
      if (!status.ok()) ReplyWithError(event.call, status, turn_);
      return Touch(id);
    }
    ReplyWithError(event.call,
                   RefuseField(StatusCode::kNotFound, "path", "is {}: no job has such a checkpoint",
                               event.request.path()),
                   turn_);
  }

  void operator()(const RebuildJobCall& event) {
    const std::string& name = event.request.job().name();
    StatusOr<Job> job = state_.jobs.contains(name)
                            ? RefuseField(StatusCode::kInvalidArgument, "name",
                                          "is {}, which the catalog has already", name)
                            : RebuildJob(event, state_.last_sequence + 1, state_.jobs, turn_);
    if (!job.ok()) return ReplyWithError(event.call, job.status(), turn_);
    ++state_.last_sequence;
    Admit(*std::move(job), event.call);
  }

  void operator()(const ReadLogsCall& event) {
    const Job* const job = FindJob(JobId(event.request.name()));
    if (job != nullptr) {
      return AskForLogs(*job, event.call, event.request, &state_.log_reads, turn_);
    }
    turn_.effects.logs.push_back({event.call, NoSuchJob("name", event.request.name()), {}, true});
  }

  void operator()(const TraceJobCall& event) {
    const Job* const job = FindJobOrReply("name", event.request.name(), event.call);
    if (job != nullptr) AskForTrace(*job, event.call, event.request, &state_.traces, turn_);
  }

  void operator()(const DrainWorkerCall& event) { DrainWorker(event, state_, turn_); }

  void operator()(const UndrainWorkerCall& event) { UndrainWorker(event, state_, turn_); }

  void operator()(const NamespacesChanged& event) {
    state_.options.namespaces = event.namespaces;
    turn_.reschedule = true;
  }

  void operator()(const CallAbandoned& event) {
    AbandonTrace(event.call, &state_.traces);
    for (auto& [id, job] : state_.jobs) {
      std::erase_if(job.cancel_callers,
                    [&](const CancelCaller& caller) { return caller.call == event.call; });
      for (auto& [number, attempt] : job.attempts) std::erase(attempt.callers, event.call);
    }
    AbandonLogs(event.call, &state_.log_reads);
    for (auto& [id, removal] : state_.removals) {
      std::erase_if(removal.callers,
                    [&](const RemovalCaller& caller) { return caller.call == event.call; });
    }
  }

  // Called last in each turn.
  void End();

  // Places the queued jobs that can be placed. The queue must be up to date (Touch).
  void Schedule() {
    if (!turn_.reschedule) return;
    LeaveDrainingWorkers();
    turn_.reschedule = false;
    const PlacedJobs placed = PlaceQueuedJobs(state_.index.queue(), &state_.jobs, turn_);
    for (const std::string& id : placed.started) Touch(id);
    const std::set<std::string> active = state_.index.active();
    ConsiderGrowths(placed, active, &state_.jobs, turn_);
    for (const std::string& id : active) {
      if (state_.jobs.at(id).smaller) Touch(id);
    }
    StartBurnIns(turn_);
  }

  // The actions of kTickTimers.
  void LoseWorkers() {
    std::vector<SessionId> closed;
    const std::vector<std::string> lost =
        ExpireWorkers(turn_.limits(), turn_.now, &state_.fleet, &closed, &turn_.effects.writes);
    for (const SessionId session : closed) {
      Refuse(session, fmt::format("session {}", session),
             DeadlineExceeded("no message came from it for {} s", ToSeconds(turn_.limits().lease)),
             true);
    }
    for (const std::string& worker : lost) {
      ForEachGroupOn(
          worker, [&](Job& job) { OnWorkerLost(job, worker, "no message came from it", turn_); });
    }
    if (!lost.empty()) turn_.reschedule = true;
  }

  void AdvanceJobs() {
    const std::set<std::string> active = state_.index.active();
    for (const std::string& id : active) {
      OnJobTime(state_.jobs.at(id), turn_);
      Touch(id);
    }
  }

  void EndLogReads() { ExpireLogs(&state_.log_reads, turn_); }
  void EndTraces() { ExpireTraces(&state_.traces, turn_); }
  void ConsiderBurnIns() {
    const std::optional<MonotonicTime> due = NextBurnInTime(state_.fleet);
    if (due && turn_.now >= *due) turn_.reschedule = true;
  }

  // The actions of kTurnTimers.
  void EndRemovals() { EndLateRemovals(state_, turn_); }
  void RemoveEndedJobs() { LetEndedGo(state_, turn_); }
  void EndDrains() { EndForgottenDrains(state_, turn_); }

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

  void LeaveDrainingWorkers() {
    if (!AnyDrains(state_.fleet)) return;
    const std::set<std::string> active = state_.index.active();
    for (const std::string& id : active) {
      Job& job = state_.jobs.at(id);
      Apply(job, ConsiderMove(job, turn_), turn_);
      Touch(id);
    }
  }

  // Updates the index after a change of `id`.
  void Touch(const std::string& id) {
    Job& job = state_.jobs.at(id);
    BeginToLookForImages(job, turn_.now);
    state_.index.Update(job, turn_.limits());
  }

  template <typename Visit>
  void ForEachGroupOn(const std::string& worker, Visit visit) {
    for (const std::string& id : state_.index.OnWorker(worker)) {
      Job& job = state_.jobs.at(id);
      if (!job.group) continue;
      visit(job);
      Touch(id);
    }
  }

  // Whether the message may have an effect. Denied messages of a stream are logged at their 1st,
  // 2nd, 4th, 8th … occurrence.
  bool IsHeeded(const v1::WorkerMessage& message, Worker& sender) {
    const Authority authority = JudgeMessage(
        message, sender,
        {state_.jobs, state_.fleet, state_.log_reads, state_.traces, state_.options.bugs});
    if (authority.verdict != Authority::Verdict::kDenied) {
      return authority.verdict == Authority::Verdict::kAccepted;
    }
    const std::string kind = KindOf(message);
    turn_.effects.measurements.push_back(MessageDenied{kind});
    const int64_t denied = ++sender.denied_messages;
    if ((denied & (denied - 1)) == 0) {
      turn_.effects.notes.push_back(
          fmt::format("{} of worker \"{}\" is denied (denied message {} of this stream): {}", kind,
                      sender.name, denied, authority.reason));
    }
    return false;
  }

  // REQUIRES: JudgeMessage accepted it.
  void OnWorkerMessage(const v1::WorkerMessage& message, Worker& worker) {
    const std::string name = worker.name;
    switch (message.message_case()) {
      case v1::WorkerMessage::kHeartbeat: {
        worker.memory_bytes = message.heartbeat().memory_bytes();
        v1::CoordinatorMessage ack;
        ack.mutable_heartbeat_ack();
        return SendToWorker(name, std::move(ack), turn_);
      }
      case v1::WorkerMessage::kGoodbye:
        return OnGoodbye(name, worker.session);
      case v1::WorkerMessage::kDraining:
        return OnDraining(message.draining(), worker);
      case v1::WorkerMessage::kRankDevice:
        return OfJob(message.rank_device(), OnRankDevice);
      case v1::WorkerMessage::kRankAddress:
        return OfJob(message.rank_address(), OnRankAddress);
      case v1::WorkerMessage::kRankCores:
        return OfJob(message.rank_cores(), OnRankCores);
      case v1::WorkerMessage::kRankFlight:
        return OfJob(message.rank_flight(), OnRankFlight);
      case v1::WorkerMessage::kRankReady:
        return OfJob(message.rank_ready(), OnRankReady);
      case v1::WorkerMessage::kStepReport:
        return OfJob(message.step_report(), OnStepReport);
      case v1::WorkerMessage::kShardDone:
        return OfJob(message.shard_done(), [&](Job& job, const v1::ShardDone& vote, Turn& turn) {
          return OnShardDone(job, vote, name, turn);
        });
      case v1::WorkerMessage::kShardFailed:
        return OfJob(message.shard_failed(), OnShardFailed);
      case v1::WorkerMessage::kManifestDone:
        return OfJob(message.manifest_done(), OnManifestDone);
      case v1::WorkerMessage::kRankFailed:
        return OfJob(message.rank_failed(),
                     [&](Job& job, const v1::RankFailed& failed, Turn& turn) {
                       OnRankFailed(job, failed, name, turn);
                     });
      case v1::WorkerMessage::kImageSaved:
        return OfJob(message.image_saved(), OnImageSaved);
      case v1::WorkerMessage::kRankStopped:
        return OnStopped(message.rank_stopped(), name);
      case v1::WorkerMessage::kDeviceCondemned:
        if (!CondemnDevice(message.device_condemned(), &worker)) return;
        turn_.reschedule = true;
        turn_.effects.notes.push_back(fmt::format("a device of {} is condemned: {}", name,
                                                  Shortened(message.device_condemned().reason())));
        return;
      case v1::WorkerMessage::kCheckpointDeleted:
        OfJob(message.checkpoint_deleted(), OnCheckpointDeleted);
        return RemoveIfDeleted(message.checkpoint_deleted().job(), state_, turn_);
      case v1::WorkerMessage::kCheckpointVerified:
        return OfJob(message.checkpoint_verified(),
                     [&](Job& job, const v1::CheckpointVerified& read, Turn& turn) {
                       return OnCheckpointVerified(job, read, name, turn);
                     });
      case v1::WorkerMessage::kBurnInDone:
        return OnBurnInDone(message.burn_in_done(), name, turn_);
      case v1::WorkerMessage::kLogLines:
        return OnLogLines(message.log_lines(), LifeOf(worker), &state_.log_reads, turn_);
      case v1::WorkerMessage::kRankTrace:
        return OnRankTrace(message.rank_trace(), &state_.traces, turn_);
      case v1::WorkerMessage::kHello:
      case v1::WorkerMessage::MESSAGE_NOT_SET:
        return;
    }
  }

  void OnStopped(const v1::RankStopped& stopped, const std::string& worker) {
    if (ReleaseRank(worker, stopped.job(), stopped.group_epoch(), stopped.rank(), &state_.fleet,
                    &turn_.effects.writes)) {
      turn_.reschedule = true;
    }
    Job* const job = FindJob(stopped.job());
    if (job != nullptr && IsCurrent(*job, stopped.group_epoch(), stopped.rank(), worker, turn_)) {
      OnRankStopped(*job, stopped, worker, turn_);
    }
    AskAgainAfterEnd(stopped, worker, state_.traces, turn_);
    if (job == nullptr) return;
    // It may have been the last rank that could write to attempts of its epoch.
    SendDeletions(*job, turn_);
    Touch(job->id());
  }

  // Passes a message to the job that it names, and applies the transition that the handler returns.
  template <typename Message, typename Handle>
  void OfJob(const Message& message, Handle handle) {
    Job& job = state_.jobs.at(message.job());
    if constexpr (std::is_void_v<std::invoke_result_t<Handle, Job&, const Message&, Turn&>>) {
      handle(job, message, turn_);
    } else {
      Apply(job, handle(job, message, turn_), turn_);
    }
    Touch(job.id());
  }

  // The count of refusals of `whom` with this one, which is logged at the 1st, 2nd, 4th, 8th … of
  // them.
  int64_t CountRefusal(const std::string& whom) {
    if (state_.refusals.size() >= kMaxRefusals) state_.refusals.clear();
    return ++state_.refusals[whom];
  }

  // `whom`: for the log.
  void Refuse(SessionId session, const std::string& whom, const Status& status, bool retry) {
    const int64_t count = CountRefusal(fmt::format("{}: {}", whom, ToString(status)));
    if ((count & (count - 1)) == 0) {
      turn_.effects.notes.push_back(fmt::format(
          "{} is refused{}: {}", whom, count == 1 ? "" : fmt::format(" ({} times so far)", count),
          ToString(status)));
    }
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
    if (hello.has_draining()) OnDraining(hello.draining(), state_.fleet.workers.at(hello.name()));
    ReleaseNotHeld(hello.name(), hello, &state_.fleet, &turn_.effects.writes);
    StopStaleGroups(hello);
    ForEachGroupOn(hello.name(), [&](Job& job) {
      if (outcome.new_life) {
        OnWorkerLost(job, hello.name(), "it ended and reconnected as a new incarnation", turn_);
      } else {
        Apply(job, ResendTo(job, hello.name(), hello, turn_), turn_);
      }
    });
    DropNeedlessImages(hello, &state_.jobs, turn_);
    AskForBurnInAnew(hello.name(), turn_);
    // Resends requests made while it was away, or before its ranks had ended.
    for (const std::string& id : state_.index.OnWorker(hello.name())) {
      Job& job = state_.jobs.at(id);
      SendDeletions(job, turn_);
      SendVerifications(job, Occasion::kOther, turn_);
      if (job.delete_again_time) Touch(id);
    }
    turn_.reschedule = true;
  }

  void OnDraining(const v1::Draining& draining, Worker& worker) {
    const bool is_repeated = worker.drain.has_value();
    NoteDraining(draining, turn_.now, turn_.wall_ns, &worker);
    if (!is_repeated) {
      turn_.effects.notes.push_back(
          fmt::format("worker \"{}\" drains for {:.0f} s: {}", worker.name,
                      ToSeconds(worker.drain->end - turn_.now), worker.drain->reason));
    }
    turn_.reschedule = true;
  }

  void OnGoodbye(const std::string& name, SessionId session) {
    turn_.effects.notes.push_back(fmt::format("worker \"{}\" leaves: it was asked to stop", name));
    v1::CoordinatorMessage answer;
    answer.set_leader_epoch(state_.leader_epoch);
    answer.mutable_heartbeat_ack();
    turn_.effects.messages.push_back({session, std::move(answer), true});
    CloseSession(session, turn_.now, &state_.fleet);
    ForEachGroupOn(name, [&](Job& job) { OnWorkerStopped(job, name, turn_); });
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

  Status Resume(Job& job, const ResumeJobCall& event) {
    // The images are dropped only if the job is resumed without them.
    v1::JobImages images = job.images;
    const bool discards = event.request.discard_images();
    if (discards) job.images.Clear();
    Status status = ResumeJob(job, event.request, event.prepared, turn_);
    if (discards) job.images = std::move(images);
    if (discards && status.ok()) DropImages(job, turn_);
    return status;
  }

  Status Create(const CreateJobCall& event) {
    const std::string& request_id = event.request.request_id();
    if (request_id.size() > kMaxRequestIdBytes) {
      return RefuseField(StatusCode::kInvalidArgument, "request_id",
                         "has {} bytes, must have at most {}", request_id.size(),
                         kMaxRequestIdBytes);
    }
    const std::string key = RequestKey(event.request);
    if (!request_id.empty()) {
      const auto known = state_.requests.find(key);
      if (known != state_.requests.end()) {
        const auto asked = state_.request_digests.find(key);
        if (asked != state_.request_digests.end() &&
            asked->second != RequestDigest(event.request)) {
          return RefuseField(StatusCode::kAlreadyExists, "request_id",
                             "is {}, which created job {} with other content: repeat a request "
                             "unchanged, or give a new request an id of its own",
                             Shortened(request_id), known->second);
        }
        ReplyWithJob(state_.jobs.at(known->second), event.call, turn_);
        return OkStatus();
      }
      TROUPE_RETURN_IF_ERROR(CheckUnused(request_id, key));
    }
    const std::string& name = event.request.job().name();
    if (state_.jobs.contains(name)) {
      return RefuseField(StatusCode::kInvalidArgument, "name",
                         "is {}, which another job already has: give this one another name "
                         "(--name), or delete that one once it has ended (`troupe delete {}`)",
                         name, name);
    }
    TROUPE_RETURN_IF_ERROR(CheckAdmission(state_, name, event.creator, turn_.now));
    std::shared_ptr<const PreparedJob> prepared = event.prepared;
    if (prepared == nullptr) {
      v1::JobSpec stated = event.request.job();
      FillCheckpointFolder(state_.options, &stated);
      prepared = std::make_shared<PreparedJob>(Prepare(state_.options.planner, stated));
    }
    TROUPE_ASSIGN_OR_RETURN(v1::JobSpec spec, prepared->spec);
    TROUPE_ASSIGN_OR_RETURN(v1::Plan plan, prepared->plan);
    TROUPE_RETURN_IF_ERROR(CheckConfined(state_.options, spec, plan));
    Job job =
        CreateJob(std::move(spec), std::move(plan), ++state_.last_sequence, event.creator, turn_);
    CountSubmission(job.id(), turn_.now, &state_);
    AddStatedKeys(event.request.job(), job.record.mutable_stated_keys());
    job.record.set_only_once(!request_id.empty() && event.request.only_once());
    SaveRecord(job, turn_);
    if (!request_id.empty()) {
      const std::string digest = RequestDigest(event.request);
      turn_.effects.writes.PutRequest(key, job.id(), digest);
      state_.requests[key] = job.id();
      state_.request_digests[key] = digest;
    }
    Admit(std::move(job), event.call);
    return OkStatus();
  }

  // ALREADY_EXISTS if the job of the request has been removed and must not be created again.
  Status CheckUnused(const std::string& request_id, const std::string& key) const {
    const auto used = state_.used_requests.find(key);
    if (used == state_.used_requests.end()) return OkStatus();
    return RefuseField(StatusCode::kAlreadyExists, "request_id",
                       "is {}, which created job {}, and that was removed: give a new request an "
                       "id of its own",
                       Shortened(request_id), used->second.job());
  }

  // Adds a job that is recorded in the turn's writes to the state, and replies with it.
  void Admit(Job job, CallId call) {
    if (job.record.group_epoch() < state_.epoch_floor) {
      job.record.set_group_epoch(state_.epoch_floor);
      SaveRecord(job, turn_);
    }
    turn_.effects.failpoints_after.push_back("catalog.job.recorded");
    ReplyWithJob(job, call, turn_);
    const std::string id = job.id();
    state_.jobs.emplace(id, std::move(job));
    Touch(id);
  }

  CoordinatorState& state_;
  Turn turn_;
};

// A point in time at which the machine acts by itself.
struct Timer {
  std::string_view name;
  std::optional<MonotonicTime> (*due)(const CoordinatorState& state);
  // Does what is due at the turn's time, if anything is.
  void (Stepper::*act)();
};

// Those that act on a Tick, before jobs are placed, in this order.
constexpr Timer kTickTimers[] = {
    {"workers",
     [](const CoordinatorState& state) { return NextExpiry(state.options.limits, state.fleet); },
     &Stepper::LoseWorkers},
    {"jobs",
     [](const CoordinatorState& state) {
       std::optional<MonotonicTime> next;
       for (const std::string& id : state.index.active())
         next = EarlierOf(next, NextJobDeadline(state.jobs.at(id), state.options.limits));
       return next;
     },
     &Stepper::AdvanceJobs},
    {"log reads", [](const CoordinatorState& state) { return NextLogDeadline(state.log_reads); },
     &Stepper::EndLogReads},
    {"traces", [](const CoordinatorState& state) { return NextTraceDeadline(state.traces); },
     &Stepper::EndTraces},
    {"burn-ins", [](const CoordinatorState& state) { return NextBurnInTime(state.fleet); },
     &Stepper::ConsiderBurnIns},
};

// Those that act at the end of each turn, because other events may end what they wait for.
constexpr Timer kTurnTimers[] = {
    {"removals", NextRemovalDeadline, &Stepper::EndRemovals},
    {"ended jobs", NextTimeToLetEndedGo, &Stepper::RemoveEndedJobs},
    {"drains", NextTimeToEndDrains, &Stepper::EndDrains},
};

void Stepper::operator()(const Tick&) {
  for (const Timer& timer : kTickTimers) (this->*timer.act)();
}

void Stepper::End() {
  for (const Timer& timer : kTurnTimers) (this->*timer.act)();
}

}  // namespace

Effects Step(CoordinatorState& state, const Event& event) {
  Effects effects;
  Stepper stepper(state, event, effects);
  std::visit(stepper, event.what);
  stepper.Schedule();
  stepper.End();
  return effects;
}

std::optional<MonotonicTime> NextDeadline(const CoordinatorState& state) {
  std::optional<MonotonicTime> next;
  for (const Timer& timer : kTickTimers) next = EarlierOf(next, timer.due(state));
  for (const Timer& timer : kTurnTimers) next = EarlierOf(next, timer.due(state));
  return next;
}

}  // namespace troupe
