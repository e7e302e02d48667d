#include "tests/simulation/rank_model.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "worker/daemon/rank_actor.h"

namespace troupe::simulation {
namespace {

using std::chrono::milliseconds;

constexpr Duration kPeerLossLimit = milliseconds(100);

struct ProcessUp {
  static constexpr std::string_view kMessageName = "rank.process_up";
};
struct ProcessGone {
  static constexpr std::string_view kMessageName = "rank.process_gone";
};
struct RankAlarm {
  static constexpr std::string_view kMessageName = "rank.alarm";
  uint64_t rank = 0;
  uint64_t wake = 0;
};
struct TicketOver {
  static constexpr std::string_view kMessageName = "rank.ticket_over";
  uint64_t rank = 0;
};
struct StopNow {
  static constexpr std::string_view kMessageName = "rank.stop_now";
  uint64_t rank = 0;
};

}  // namespace

Status RankModel::Start(Context& context) {
  events_ = MakeEventSender(world_, context);
  context.SetTimer(DrawDuration(context, milliseconds(5), milliseconds(100)),
                   AnyMessage(ProcessUp{}));
  return OkStatus();
}

Status RankModel::Handle(AnyMessage message, Context& context) {
  if (const auto* command = message.As<CommandRank>()) {
    OnCommand(command->command, context);
  } else if (message.As<KillRank>()) {
    Kill(context);
  } else if (message.As<ProcessUp>()) {
    Up(context);
  } else if (message.As<ProcessGone>()) {
    Gone(context);
  } else if (message.As<OfferAgain>()) {
    TROUPE_RETURN_IF_ERROR(events_->OfferLater(context));
  } else {
    OnMessage(message, context);
  }
  if (phase_ == Phase::kGone && events_->done()) context.Stop();
  return OkStatus();
}

void RankModel::Up(Context& context) {
  if (phase_ != Phase::kStarting) return;
  phase_ = Phase::kIdle;
  ReportIdle(context);
}

void RankModel::Kill(Context& context) {
  if (phase_ == Phase::kDead || phase_ == Phase::kGone) return;
  context.SetTimer(EndRank() + DrawDuration(context, milliseconds(1), milliseconds(20)),
                   AnyMessage(ProcessGone{}));
}

Duration RankModel::EndRank() {
  world_.End(number_, kPeerLossLimit);
  phase_ = Phase::kDead;
  const bool outlives = is_blocked_ && !world_.blocked_writes.at(worker_).killable;
  return outlives ? world_.BlockedFor(worker_) : Duration::zero();
}

void RankModel::Gone(Context& context) {
  v1::ShardDone unsent;
  if (is_blocked_ && world_.BlockedFor(worker_) == Duration::zero())
    WriteShard(unsent).IgnoreError();
  Exit(SIGKILL, context);
}

void RankModel::Exit(int signal, Context& context) {
  phase_ = Phase::kGone;
  Report(session::RankExited{.device = device_, .signal = signal}, context);
}

void RankModel::ReportToDaemon(v1::WorkerMessage message, Context& context) {
  v1::RankReport report;
  *report.mutable_worker() = std::move(message);
  Report(session::RankReported{device_, std::move(report)}, context);
}

void RankModel::ReportIdle(Context& context) {
  v1::RankReport idle;
  idle.mutable_idle();
  Report(session::RankReported{device_, std::move(idle)}, context);
}

template <typename What>
void RankModel::Report(What what, Context& context) {
  // An error would be a daemon flooded with its ranks' reports.
  const Status sent = events_->Report(std::move(what), context);
  world_.truth.Check(sent.ok(), 15, ToString(sent));
}

void RankModel::Wake(Duration delay, Context& context) {
  context.SetTimer(delay, AnyMessage(RankAlarm{number_, ++wake_}));
}

void RankModel::OnCommand(const v1::RankCommand& command, Context& context) {
  if (phase_ == Phase::kDead || phase_ == Phase::kGone) return;
  if (command.has_begin()) {
    Begin(command.begin(), context);
    return;
  }
  const v1::CoordinatorMessage& message = command.coordinator();
  if (phase_ == Phase::kIdle || phase_ == Phase::kStopping) return;
  if (message.has_address_book()) {
    const v1::AddressBook& book = message.address_book();
    if (book.group_epoch() != group_.epoch || phase_ != Phase::kAddressed) return;
    world_.truth.Check(book.addresses_size() == ranks_, 5,
                       fmt::format("{} epoch {}: an address book of {} for {} ranks", group_.job,
                                   group_.epoch, book.addresses_size(), ranks_));
    for (const v1::RankAddress& address : book.addresses()) {
      world_.truth.Check(
          !world_.IsStrange(address.address(), group_, address.rank()), 3,
          fmt::format("{} epoch {}: the address of rank {}, {}, is of another epoch's", group_.job,
                      group_.epoch, address.rank(), address.address()));
    }
    if (const Status proof = FinishFolderProof(book); !proof.ok()) {
      return FailFolder(proof, context);
    }
    phase_ = Phase::kJoining;
    world_.bus.Join(group_, rank_, ranks_, context.self(), number_);
  } else if (message.has_ticket()) {
    world_.truth.Check(message.ticket().group_epoch() == group_.epoch, 3,
                       fmt::format("{} epoch {} gets a ticket of epoch {}", group_.job,
                                   group_.epoch, message.ticket().group_epoch()));
    OnTicket(message.ticket(), context);
  } else if (message.has_checkpoint_request()) {
    const v1::CheckpointIntent& intent = message.checkpoint_request().intent();
    if (intent.step() > 0) {
      due_[intent.step()] = intent;
      if (phase_ == Phase::kReady) BeginStep(context);
      return;
    }
    requests_[intent.attempt()] = intent;
    last_request_ = std::max(last_request_, intent.attempt());
  } else if (message.has_write_manifest()) {
    WriteManifest(message.write_manifest(), context);
  } else if (message.has_save_images()) {
    if (IsHeldUp()) {
      image_order_ = message.save_images();
    } else {
      SaveImage(message.save_images(), context);
    }
  } else if (message.has_stop_ranks()) {
    // The process of every second rank that hangs is suspended.
    if (hangs_ && number_ % 2 == 0) return;
    if (message.stop_ranks().report_flight()) ReportFlight(context);
    phase_ = Phase::kStopping;
    // Sometimes longer than the limit; then the rank is killed.
    context.SetTimer(DrawDuration(context, Duration(0), world_.limits.abort * 21 / 20),
                     AnyMessage(StopNow{number_}));
  }
}

void RankModel::OnMessage(const AnyMessage& message, Context& context) {
  if (const auto* alarm = message.As<RankAlarm>()) {
    if (alarm->rank == number_ && alarm->wake == wake_) OnAlarm(context);
  } else if (const auto* saved = message.As<SaveOver>()) {
    const bool is_current = saved->rank == number_ && saved->save == save_number_;
    if (is_current && !HasEnded() && save_) EndSave(context);
  } else if (const auto* over = message.As<TicketOver>()) {
    if (over->rank == number_ && !HasEnded()) OnTicketOver(context);
  } else if (const auto* stop = message.As<StopNow>()) {
    // A rank that is blocked in a write does not end by itself.
    if (stop->rank == number_ && phase_ == Phase::kStopping && !is_blocked_)
      Stopped("stopped", context);
  } else if (const auto* formed = message.As<GroupFormed>()) {
    if (formed->rank != number_ || phase_ != Phase::kJoining) return;
    phase_ = Phase::kLoading;
    Wake(DrawDuration(context, milliseconds(20), milliseconds(300)), context);
  } else if (const auto* reduced = message.As<Reduced>()) {
    if (reduced->rank == number_ && phase_ == Phase::kReducing) OnReduced(reduced->word, context);
  } else if (const auto* broken = message.As<GroupBroken>()) {
    if (broken->rank == number_) OnPeerLost(context);
  } else if (const auto* lost = message.As<PeerLost>()) {
    if (lost->rank == number_) OnPeerLost(context);
  } else if (const auto* manifest = message.As<ManifestAgain>()) {
    if (manifest->rank == number_ && !HasEnded()) WriteManifest(manifest->write, context);
  } else {
    TROUPE_CHECK(false, "a rank received {}", message.name());
  }
}

void RankModel::OnTicketOver(Context& context) {
  if (context.Now() < ticket_deadline_) {
    context.SetTimer(ticket_deadline_ - context.Now(), AnyMessage(TicketOver{number_}));
  } else if (is_blocked_) {
    context.SetTimer(world_.limits.abort, AnyMessage(TicketOver{number_}));
  } else {
    Stopped("the ticket has expired", context);
  }
}

bool RankModel::HasEnded() const {
  return phase_ == Phase::kIdle || phase_ == Phase::kStopping || phase_ == Phase::kDead ||
         phase_ == Phase::kGone;
}

void RankModel::OnPeerLost(Context& context) {
  if (IsHeldUp() && Blocks(AnyMessage(PeerLost{number_}), context)) return;
  // The word may come after the end of the rank, when its process is idle.
  if (HasEnded() || phase_ == Phase::kFailed) return;
  Fail(Unavailable("a peer is gone"), true, "", context);
}

void RankModel::Begin(const v1::BeginRank& begin, Context& context) {
  begin_ = begin;
  const v1::StartRanks& start = begin_.start();
  group_ = {start.job(), start.group_epoch(), start.group_key()};
  rank_ = begin.rank();
  ranks_ = start.plan().ranks_size();
  number_ = world_.Begin(
      {.node = node_, .worker = worker_, .device = device_, .group = group_, .rank = rank_});
  step_ = 0;
  steps_done_ = 0;
  entered_ = 0;
  ticket_end_ = 0;
  ticket_deadline_ = {};
  due_.clear();
  requests_.clear();
  last_request_ = 0;
  last_request_done_ = 0;
  last_taken_ = 0;
  to_write_.clear();
  save_.reset();
  is_blocked_ = false;
  hangs_ = false;
  image_order_.reset();
  then_stop_ = false;
  folder_id_.clear();
  blamed_worker_.clear();
  phase_ = Phase::kLaunching;
  Wake(DrawDuration(context, milliseconds(20), milliseconds(200)), context);
}

void RankModel::OnAlarm(Context& context) {
  switch (phase_) {
    case Phase::kLaunching: {
      if (world_.FaultOf(worker_) == HostFault::kNeverReady) return;
      phase_ = Phase::kAddressed;
      v1::WorkerMessage message;
      v1::RankAddress& address = Sign(*message.mutable_rank_address());
      address.set_pid(static_cast<int64_t>(number_));
      address.set_address(fmt::format("{}", number_));
      if (const Status proof = BeginFolderProof(address); !proof.ok()) {
        return FailFolder(proof, context);
      }
      ReportToDaemon(std::move(message), context);
      break;
    }
    case Phase::kLoading:
      Load(context);
      break;
    case Phase::kComputing:
      Arrive();
      break;
    default:
      break;
  }
}

void RankModel::Load(Context& context) {
  const v1::StartRanks& start = begin_.start();
  const uint64_t seed = start.spec().training().seed();
  training_state_ = InitialState(seed);
  if (start.has_restore_images()) {
    const StatusOr<Restored> image = ReadImage();
    if (!image.ok()) return Fail(image.status(), false, "", context);
    step_ = image->step;
    training_state_ = image->state;
  } else if (!start.restore_path().empty()) {
    const Status folder = CheckFolder(start.restore_path(), start.restore_folder_id());
    if (!folder.ok()) return FailFolder(folder, context);
    const StatusOr<Restored> restored = Restore();
    if (restored.status().code() == StatusCode::kUnavailable) {
      return FailFolder(restored.status(), context);
    }
    if (!restored.ok()) {
      const bool bad = restored.status().code() == StatusCode::kDataLoss;
      Fail(restored.status(), false, bad ? start.restore_path() : "", context);
      return;
    }
    step_ = restored->step;
    training_state_ = restored->state;
  }
  world_.truth.Check(training_state_ == world_.truth.State(seed, step_), 9,
                     fmt::format("{} epoch {} rank {} restores another state of step {}",
                                 group_.job, group_.epoch, rank_, step_));
  phase_ = Phase::kReady;
  v1::WorkerMessage message;
  Sign(*message.mutable_rank_ready()).set_step(step_);
  ReportToDaemon(std::move(message), context);
}

// As rank processes do: a checkpoint that cannot be read is tried once more, then it counts as bad.
StatusOr<Restored> RankModel::Restore() const {
  const v1::StartRanks& start = begin_.start();
  const std::string& path = start.restore_path();
  if (world_.FaultOf(worker_) == HostFault::kReadsWrongly) {
    return DataLoss("{}: its host reads other bytes", path);
  }
  StatusOr<Restored> restored = world_.storage.Read(worker_, path, start.restore_digest());
  if (world_.bugs.trust_folders && restored.status().code() == StatusCode::kUnavailable) {
    restored = DataLoss("it cannot be read: {}", Message(restored.status()));
  }
  const bool sees = world_.storage.MountOf(worker_) == Mount::kThere;
  world_.truth.Check(restored.ok() || !sees || world_.storage.IsCorrupt(path), 11,
                     fmt::format("{} epoch {} rank {}: restore: {}", group_.job, group_.epoch,
                                 rank_, ToString(restored.status())));
  return restored;
}

void RankModel::OnTicket(const v1::Ticket& ticket, Context& context) {
  const bool first = ticket_deadline_ == MonotonicTime();
  ticket_end_ = std::max(ticket_end_, ticket.end_step());
  ticket_deadline_ =
      std::max(ticket_deadline_, context.Now() + FromSeconds(ticket.lifetime_seconds()));
  if (first) context.SetTimer(ticket_deadline_ - context.Now(), AnyMessage(TicketOver{number_}));
  for (const v1::CheckpointIntent& intent : ticket.intents()) due_[intent.step()] = intent;
  if (phase_ == Phase::kReady) BeginStep(context);
}

void RankModel::BeginStep(Context& context) {
  phase_ = Phase::kReady;
  if (then_stop_ || step_ >= begin_.start().spec().training().steps()) {
    // A state that could not be saved is requested again.
    const auto again = due_.find(step_);
    if (again == due_.end() || again->second.attempt() <= last_taken_) return;
    to_write_.push_back(again->second);
    last_taken_ = again->second.attempt();
    Proceed(context);
    return;
  }
  if (step_ >= ticket_end_) return;
  const JobNature& nature = world_.natures.at(group_.job);
  if (Breaks(context)) return;
  phase_ = Phase::kComputing;
  // A rank that hangs has no next alarm. It never hangs in an epoch's first step, which has such a
  // long limit that the run would consist mostly of heartbeats.
  hangs_ = steps_done_ > 0 && world_.random.Chance(world_.faults.hang_per_step);
  if (hangs_) return;
  Wake(DrawDuration(context, nature.step_time * 9 / 10, nature.step_time), context);
}

bool RankModel::Breaks(Context& context) {
  const JobNature& nature = world_.natures.at(group_.job);
  const HostFault host = world_.FaultOf(worker_);
  const bool early = steps_done_ < 3 && world_.random.Chance(0.5);
  if (early && host == HostFault::kDevice) {
    phase_ = Phase::kFailed;
    Report(session::DeviceFault{.device = device_, .cause = "Xid 94 (contained error)"}, context);
    return true;
  }
  const bool crashes = world_.random.Chance(world_.faults.crash_per_step) ||
                       (nature.crash_at_step == step_ + 1 && rank_ == 0) ||
                       (early && host == HostFault::kCrash);
  if (!crashes) return false;
  EndRank();
  Exit(SIGSEGV, context);
  return true;
}

void RankModel::Arrive() {
  phase_ = Phase::kReducing;
  ++entered_;
  const int64_t step = step_ + 1;
  // A due checkpoint is skipped while another save is in flight, except the last one.
  const bool free = !save_ || step == begin_.start().spec().training().steps();
  world_.bus.Arrive(
      group_, rank_,
      {.step = step,
       .gradient = Gradient(begin_.start().spec().training().seed(), step, rank_, ranks_),
       .ticket_end = ticket_end_,
       .highest_request = last_request_,
       .knows_intent = free && due_.contains(step)});
}

void RankModel::OnReduced(const Word& word, Context& context) {
  const uint64_t seed = begin_.start().spec().training().seed();
  world_.truth.Check(word.step == step_ + 1, 5,
                     fmt::format("{} epoch {} rank {} applies step {} after step {}", group_.job,
                                 group_.epoch, rank_, word.step, step_));
  step_ = word.step;
  training_state_ = NextState(training_state_, word.step, word.gradient);
  ++world_.steps_applied;
  ++steps_done_;
  world_.truth.Check(training_state_ == world_.truth.State(seed, step_), 8,
                     fmt::format("{} epoch {} rank {} has another state after step {}", group_.job,
                                 group_.epoch, rank_, step_));
  if (word.all_know_intent) to_write_.push_back(due_.at(step_));
  due_.erase(due_.begin(), due_.upper_bound(step_));
  if (word.min_highest_request > last_request_done_) {
    last_request_done_ = word.min_highest_request;
    v1::CheckpointIntent intent;
    intent.set_attempt(last_request_done_);
    const auto asked = requests_.find(last_request_done_);
    to_write_.push_back(asked == requests_.end() ? intent : asked->second);
    requests_.erase(requests_.begin(), requests_.upper_bound(last_request_done_));
  }
  for (const v1::CheckpointIntent& intent : to_write_)
    last_taken_ = std::max(last_taken_, intent.attempt());
  v1::WorkerMessage message;
  v1::StepReport& report = Sign(*message.mutable_step_report());
  report.set_step(step_);
  report.set_step_seconds(ToSeconds(world_.natures.at(group_.job).step_time));
  world_.reports_during_saves += save_.has_value();
  report.set_writing_attempt(save_ && IsAsync() ? save_->intent.attempt() : 0);
  if (rank_ == 0) {
    v1::StepEvent& event = *report.mutable_event();
    event.set_loss(Loss(seed, step_));
    // So that a row shows the group it comes from.
    event.set_grad_norm(static_cast<double>(group_.epoch));
    event.set_tokens(kSlots);
    if (!to_write_.empty()) report.set_checkpoint_attempt(to_write_.front().attempt());
  }
  ReportToDaemon(std::move(message), context);
  Proceed(context);
}

void RankModel::ReportFlight(Context& context) {
  const bool waits = phase_ == Phase::kReducing;
  v1::WorkerMessage message;
  v1::RankFlight& flight = Sign(*message.mutable_rank_flight());
  flight.set_activity(fmt::format("step {}", step_ + 1));
  v1::GroupFlight& group = *flight.add_groups();
  group.set_group("all/0");
  group.set_axis("all");
  for (int rank = 0; rank < ranks_; ++rank) group.add_ranks(rank);
  group.set_entered(entered_);
  if (waits) group.set_blocked_in(entered_);
  group.set_operation("all_reduce");
  ReportToDaemon(std::move(message), context);
}

void RankModel::FailFolder(const Status& cause, Context& context) {
  phase_ = Phase::kFailed;
  world_.bus.Leave(group_, rank_, kPeerLossLimit);
  v1::WorkerMessage message;
  v1::RankFailed& failed = Sign(*message.mutable_rank_failed());
  failed.set_code(static_cast<int>(cause.code()));
  failed.set_message(ToString(cause));
  failed.set_cause("STORAGE");
  failed.set_blamed_worker(blamed_worker_);
  ReportToDaemon(std::move(message), context);
}

void RankModel::Fail(const Status& cause, bool secondary, const std::string& bad_path,
                     Context& context) {
  phase_ = Phase::kFailed;
  // The process lives, but its peers no longer get answers from it.
  world_.bus.Leave(group_, rank_, kPeerLossLimit);
  v1::WorkerMessage message;
  v1::RankFailed& failed = Sign(*message.mutable_rank_failed());
  failed.set_code(static_cast<int>(cause.code()));
  failed.set_message(ToString(cause));
  failed.set_secondary(secondary);
  if (secondary) failed.set_cause("COLLECTIVE");
  failed.set_bad_checkpoint_path(bad_path);
  ReportToDaemon(std::move(message), context);
}

void RankModel::Stopped(const std::string& why, Context& context) {
  world_.End(number_, kPeerLossLimit);
  phase_ = Phase::kIdle;
  v1::WorkerMessage message;
  Sign(*message.mutable_rank_stopped()).set_message(why);
  ReportToDaemon(std::move(message), context);
  ReportIdle(context);
}

}  // namespace troupe::simulation
