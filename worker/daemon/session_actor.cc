#include "worker/daemon/session_actor.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "base/log.h"
#include "worker/daemon/burn_in_actor.h"
#include "worker/daemon/coordinator_link.h"
#include "worker/daemon/core_table.h"
#include "worker/daemon/event_sender.h"
#include "worker/daemon/rank_actor.h"

namespace troupe {
namespace {

// The longest sleep, so that /health shows whether this actor works.
constexpr Duration kAlarmMax = std::chrono::seconds(1);
// The interval at which the claims of the host's other daemons are read.
constexpr Duration kClaimsInterval = std::chrono::seconds(1);

struct Alarm {
  static constexpr std::string_view kMessageName = "session.alarm";
};

class SessionShell final : public SessionActor {
 public:
  explicit SessionShell(SessionActorOptions options) : options_(std::move(options)) {}

  Status Start(Context& context) override {
    state_ = session::MakeState(options_.config, context.Now());
    ranks_.resize(state_.devices.size());
    TROUPE_ASSIGN_OR_RETURN(link_, SpawnPart("coordinator link", std::move(options_.link),
                                             options_.link_capacity, context));
    TROUPE_ASSIGN_OR_RETURN(burn_in_, SpawnPart("burn-in", std::move(options_.burn_in),
                                                options_.burn_in_capacity, context));
    if (options_.devices) {
      TROUPE_RETURN_IF_ERROR(SpawnPart("watch of devices", std::move(options_.devices),
                                       options_.devices_capacity, context)
                                 .status());
    }
    files_ = options_.open_files(context.self());
    OpenCoreTable(context);
    HandleEvent(session::Tick{}, context);
    return Finish(context);
  }

  Status Handle(AnyMessage message, Context& context) override {
    if (auto* events = message.As<SessionEvents>()) {
      for (SessionEvent& event : *events->events) {
        std::visit([&](auto& what) { Receive(std::move(what), context); }, event.what);
        event.turn.reset();
      }
    } else if (message.As<Alarm>()) {
      alarm_time_ = MonotonicTime::max();
      ReadClaims(context);
      KeepTotals(context.Now());
      OfferBurnIn(context);
      if (context.Now() >= session::NextDeadline(state_)) HandleEvent(session::Tick{}, context);
    } else {
      return Internal("the session received {}", message.name());
    }
    return Finish(context);
  }

  const session::State& state() const override { return state_; }

  Status HandleEnd(Address child, const Status& cause, Context& context) override {
    if (const auto part = parts_.find(child); part != parts_.end())
      return PartEnded(part->second, cause);
    for (size_t device = 0; device < ranks_.size(); ++device) {
      if (ranks_[device].actor != child) continue;
      LogError("worker", "the actor of device {}'s rank ended: {}", device, ToString(cause));
      ranks_[device] = {};
      HandleEvent(
          session::RankExited{
              static_cast<int>(device), 0, SIGKILL, {}, std::string(Message(cause))},
          context);
      return Finish(context);
    }
    return cause;  // OK: a rank that has reported its end
  }

 private:
  struct Rank {
    Address actor;
    pid_t pid = 0;
  };

  StatusOr<Address> SpawnPart(const std::string& name, std::unique_ptr<Actor> actor,
                              size_t capacity, Context& context) {
    TROUPE_ASSIGN_OR_RETURN(const Address address,
                            context.Spawn(name, std::move(actor), {.mailbox_capacity = capacity}));
    parts_[address] = name;
    return address;
  }

  // Sends what the handled events gathered for the coordinator, and sets the next alarm.
  Status Finish(Context& context) {
    Flush(context);
    options_.works->Touch();
    if (options_.has_session != nullptr)
      *options_.has_session =
          state_.link == session::Link::kUp && !state_.drain && !state_.leave_by && !end_;
    if (end_) {
      context.Stop(*end_);
      return OkStatus();
    }
    const MonotonicTime now = context.Now();
    MonotonicTime due = std::min(session::NextDeadline(state_), now + kAlarmMax);
    if (core_table_) due = std::min(due, claims_due_);
    // An alarm that comes too early only sets the next one, which is cheaper than a new timer for
    // every message that postpones the deadline.
    if (alarm_time_ <= due) return OkStatus();
    context.CancelTimer(alarm_);
    alarm_time_ = due;
    alarm_ = context.SetTimer(due - now, AnyMessage(Alarm{}));
    return OkStatus();
  }

  void Receive(session::RankReported reported, Context& context) {
    if (reported.report.has_metrics()) {
      options_.totals->Add(reported.device, reported.report.metrics());
    } else {
      HandleEvent(std::move(reported), context);
    }
  }
  void Receive(session::RankExited exited, Context& context) {
    ranks_[static_cast<size_t>(exited.device)] = {};
    HandleEvent(std::move(exited), context);
  }
  template <typename What>
  void Receive(What what, Context& context) {
    HandleEvent(std::move(what), context);
  }

  template <typename What>
  void HandleEvent(What what, Context& context) {
    for (session::Effect& effect : session::Step(state_, {context.Now(), std::move(what)})) {
      std::visit([&](auto& one) { Perform(one, context); }, effect);
    }
  }

  void KeepTotals(MonotonicTime now) {
    std::set<std::string> jobs;
    for (const session::Device& device : state_.devices) {
      if (!device.job.empty()) jobs.insert(device.job);
    }
    options_.totals->KeepJobs(jobs, now);
  }

  void OpenCoreTable(Context& context) {
    if (options_.core_table.empty()) return;
    StatusOr<std::unique_ptr<CoreTable>> table = CoreTable::Open(options_.core_table);
    if (!table.ok()) return NoteTable(table.status(), context);
    core_table_ = *std::move(table);
  }

  void ReadClaims(Context& context) {
    if (!core_table_ || context.Now() < claims_due_) return;
    claims_due_ = context.Now() + kClaimsInterval;
    StatusOr<std::vector<v1::CoreClaims>> others = core_table_->Others();
    if (!others.ok()) return NoteTable(others.status(), context);
    std::string text;
    for (const v1::CoreClaims& claims : *others) text += claims.SerializeAsString();
    if (text == others_claim_) return;
    others_claim_ = std::move(text);
    HandleEvent(session::OthersClaim{*std::move(others)}, context);
  }

  // Logs each complaint once; ranks that begin from now on report it as a fall-back.
  void NoteTable(const Status& status, Context& context) {
    std::string text = ToString(status);
    if (text == table_complaint_) return;
    LogWarning("worker", "cores are not shared out with other daemons of this host: {}", text);
    table_complaint_ = text;
    HandleEvent(session::CoreTableFault{std::move(text)}, context);
  }

  // Sends the gathered messages as one, so that even all reports of a new stream need one place in
  // the link's mailbox.
  void Flush(Context& context) {
    if (to_coordinator_.empty()) return;
    SendToLink(SendOnStream{state_.stream, std::exchange(to_coordinator_, {})}, context);
  }

  template <typename Body>
  void SendToLink(Body body, Context& context) {
    const Status sent = context.Send(link_, AnyMessage(std::move(body)));
    // NOT_FOUND: its end, which ends this actor, is in flight.
    if (sent.code() != StatusCode::kResourceExhausted) return;
    LogWarning("worker", "the stream is given up: {}", Message(sent));
    HandleEvent(
        session::StreamClosed{state_.stream, "more messages wait for it than its mailbox holds"},
        context);
    to_coordinator_.clear();
  }

  void Perform(session::Dial& dial, Context& context) {
    Flush(context);
    SendToLink(DialCoordinator{dial.stream, std::move(dial.hello)}, context);
  }
  void Perform(session::HangUp&, Context& context) {
    Flush(context);
    SendToLink(HangUpCoordinator{}, context);
  }
  void Perform(session::SendToCoordinator& send, Context&) {
    to_coordinator_.push_back(std::move(send.message));
  }
  void Perform(session::SendHeartbeat& heartbeat, Context&) {
    int64_t bytes = options_.memory_bytes(getpid());
    for (const Rank& rank : ranks_) {
      if (rank.pid > 0) bytes += options_.memory_bytes(rank.pid);
    }
    v1::WorkerMessage message;
    message.set_leader_epoch(heartbeat.leader_epoch);
    message.mutable_heartbeat()->set_memory_bytes(bytes);
    to_coordinator_.push_back(std::move(message));
  }
  void Perform(session::StartProcess& start, Context& context) {
    const auto spawn = [&]() -> StatusOr<Rank> {
      TROUPE_ASSIGN_OR_RETURN(StartedRank started, options_.start_rank(start.device));
      TROUPE_ASSIGN_OR_RETURN(
          const Address actor,
          context.Spawn(fmt::format("rank of device {}", start.device), std::move(started.actor),
                        {.mailbox_capacity = options_.rank_capacity}));
      return Rank{actor, started.pid};
    };
    const StatusOr<Rank> rank = spawn();
    if (!rank.ok()) {
      LogError("worker", "device {}: {}", start.device, ToString(rank.status()));
      HandleEvent(session::RankExited{start.device, 1, 0, {}, std::string(Message(rank.status()))},
                  context);
      return;
    }
    options_.totals->Restart(start.device, "");
    ranks_[static_cast<size_t>(start.device)] = *rank;
  }
  void Perform(session::KillProcess& kill, Context& context) {
    SendToRank(kill.device, KillRank{std::move(kill.reason)}, context);
  }
  void Perform(session::SendToRank& send, Context& context) {
    if (send.command.has_begin())
      options_.totals->Restart(send.device, send.command.begin().start().job());
    SendToRank(send.device, CommandRank{std::move(send.command)}, context);
  }

  template <typename Body>
  void SendToRank(int device, Body body, Context& context) {
    const Address actor = ranks_[static_cast<size_t>(device)].actor;
    if (!actor) return;
    const Status sent = context.Send(actor, AnyMessage(std::move(body)));
    // NOT_FOUND: its end is in flight.
    if (sent.code() != StatusCode::kResourceExhausted) return;
    context.StopChild(actor, Annotate(sent, "commands for the rank's process")).IgnoreError();
  }

  void Perform(session::ReadRankLogs& read, Context&) {
    files_->ReadLogs(std::move(read.request), std::move(read.running), Answer());
  }
  void Perform(session::ReadRankTrace& read, Context&) {
    files_->ReadTrace(std::move(read.request), read.rank, Answer());
  }

  // Passes messages to the stream of now; if it is gone by then, they are dropped.
  AnswerCoordinator Answer() const {
    return [send = options_.send, link = link_,
            stream = state_.stream](std::vector<v1::WorkerMessage> messages) {
      return send(link, AnyMessage(SendOnStream{stream, std::move(messages)}));
    };
  }

  void Perform(session::RemoveCheckpoint& remove, Context&) {
    files_->Remove(std::move(remove.request));
  }
  void Perform(session::RemoveRankLogs& remove, Context&) {
    files_->RemoveLogs(std::move(remove.request));
  }
  void Perform(session::RemoveImages& remove, Context&) {
    files_->RemoveImages(std::move(remove.request));
  }
  void Perform(session::ReadCheckpointBack& read, Context& context) {
    const Status accepted = files_->Verify(read.request);
    if (!accepted.ok()) HandleEvent(ReadBackAnswer(read.request, accepted), context);
  }
  void Perform(session::BeginBurnIn& begin, Context& context) {
    wanted_burn_in_ = WantBurnIn{std::move(begin.request)};
    OfferBurnIn(context);
  }
  void Perform(session::StopBurnIn&, Context& context) {
    wanted_burn_in_ = WantBurnIn{};
    OfferBurnIn(context);
  }
  void OfferBurnIn(Context& context) {
    if (!wanted_burn_in_) return;
    const Status sent = context.Send(burn_in_, AnyMessage(*wanted_burn_in_));
    if (sent.code() != StatusCode::kResourceExhausted) return wanted_burn_in_.reset();
    LogWarning("worker", "a burn-in begins or ends late: {}", Message(sent));
  }
  void Perform(session::PublishClaims& publish, Context& context) {
    if (!core_table_) return;
    const Status published = core_table_->Publish(publish.claims);
    if (!published.ok()) NoteTable(published, context);
  }
  void Perform(session::Note& note, Context&) { LogInfo("worker", "{}", note.text); }
  void Perform(session::EndDaemon& end, Context&) {
    if (end.exit_code == 0) {
      LogInfo("worker", "ends: {}", end.message);
    } else {
      LogError("worker", "ends: {}", end.message);
    }
    end_ = end.exit_code == 0 ? OkStatus() : Internal("{}", end.message);
    options_.exit(end.exit_code);
  }

  SessionActorOptions options_;
  session::State state_;
  std::map<Address, std::string> parts_;  // names of the children that are no ranks
  Address link_;
  Address burn_in_;
  std::vector<Rank> ranks_;                        // by device
  std::vector<v1::WorkerMessage> to_coordinator_;  // gathered while events are handled
  std::optional<WantBurnIn> wanted_burn_in_;       // its actor has had no room for it yet
  std::optional<Status> end_;                      // the daemon ends, for this cause
  TimerId alarm_;
  MonotonicTime alarm_time_ = MonotonicTime::max();
  std::unique_ptr<CoreTable> core_table_;  // null: only this daemon's ranks are known here
  MonotonicTime claims_due_;
  std::string others_claim_;  // the claims that the session got last
  std::string table_complaint_;
  std::unique_ptr<SessionFiles> files_;
};

}  // namespace

std::unique_ptr<SessionActor> MakeSessionActor(SessionActorOptions options) {
  return std::make_unique<SessionShell>(std::move(options));
}

Status PartEnded(std::string_view name, const Status& cause) {
  return cause.ok() ? Internal("{} ended by itself", name) : Annotate(cause, std::string(name));
}

}  // namespace troupe
