#include "tests/simulation/rank_model.h"

#include <algorithm>
#include <utility>

namespace troupe::simulation {
namespace {

using std::chrono::milliseconds;

constexpr Duration kPeerLossLimit = milliseconds(100);

struct Alarm {
  static constexpr std::string_view kMessageName = "rank.alarm";
  uint64_t number = 0;
  uint64_t wake = 0;
};
struct TicketOver {
  static constexpr std::string_view kMessageName = "rank.ticket_over";
  uint64_t number = 0;
};
struct StopNow {
  static constexpr std::string_view kMessageName = "rank.stop_now";
  uint64_t number = 0;
};

Duration Draw(Context& context, Duration low, Duration high) {
  return low + Duration(static_cast<int64_t>(context.RandomBits() %
                                             (static_cast<uint64_t>((high - low).count()) + 1)));
}

}  // namespace

template <typename Body>
Body& RankModel::Sign(Body& body) const {
  body.set_job(group_.job);
  body.set_group_epoch(group_.epoch);
  body.set_rank(rank_);
  return body;
}

void RankModel::Say(v1::WorkerMessage message, Context& context) {
  v1::RankReport report;
  *report.mutable_worker() = std::move(message);
  // RESOURCE_EXHAUSTED would be a daemon that drowns in its ranks' messages.
  const Status sent =
      context.Send(context.self(), AnyMessage(RankSays{device_, life_, std::move(report)}));
  world_.truth.Check(sent.ok(), 15, ToString(sent));
}

void RankModel::Wake(Duration delay, Context& context) {
  context.SetTimer(delay, AnyMessage(Alarm{number_, ++wake_}));
}

void RankModel::OnCommand(const v1::RankCommand& command, Context& context) {
  if (phase_ == Phase::kDead) return;
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
  } else if (message.has_stop_ranks()) {
    phase_ = Phase::kStopping;
    // Now and then not within the limit: then it is killed.
    context.SetTimer(Draw(context, Duration(0), world_.limits.abort * 21 / 20),
                     AnyMessage(StopNow{number_}));
  }
}

bool RankModel::OnMessage(const AnyMessage& message, Context& context) {
  if (const auto* alarm = message.As<Alarm>()) {
    if (alarm->number != number_) return false;
    if (alarm->wake == wake_) OnAlarm(context);
  } else if (const auto* over = message.As<TicketOver>()) {
    if (over->number != number_) return false;
    if (phase_ == Phase::kIdle || phase_ == Phase::kStopping || phase_ == Phase::kDead) return true;
    if (context.Now() >= ticket_deadline_) {
      Stopped("the ticket's lifetime is over", context);
    } else {
      context.SetTimer(ticket_deadline_ - context.Now(), AnyMessage(TicketOver{number_}));
    }
  } else if (const auto* stop = message.As<StopNow>()) {
    if (stop->number != number_) return false;
    if (phase_ == Phase::kStopping) Stopped("stopped", context);
  } else if (const auto* formed = message.As<GroupFormed>()) {
    if (formed->rank != number_) return false;
    if (phase_ == Phase::kJoining) {
      phase_ = Phase::kLoading;
      Wake(Draw(context, milliseconds(20), milliseconds(300)), context);
    }
  } else if (const auto* reduced = message.As<Reduced>()) {
    if (reduced->rank != number_) return false;
    if (phase_ == Phase::kReducing) OnReduced(reduced->word, context);
  } else if (const auto* broken = message.As<GroupBroken>()) {
    if (broken->rank != number_) return false;
    if (phase_ != Phase::kStopping && phase_ != Phase::kFailed && phase_ != Phase::kDead) {
      Fail(Unavailable("a peer is gone"), true, "", context);
    }
  } else {
    return false;
  }
  return true;
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
  ticket_end_ = 0;
  ticket_deadline_ = {};
  due_.clear();
  requests_.clear();
  last_request_ = 0;
  last_request_done_ = 0;
  last_taken_ = 0;
  to_write_.clear();
  then_stop_ = false;
  phase_ = Phase::kLaunching;
  Wake(Draw(context, milliseconds(20), milliseconds(200)), context);
}

void RankModel::OnAlarm(Context& context) {
  switch (phase_) {
    case Phase::kLaunching: {
      phase_ = Phase::kAddressed;
      v1::WorkerMessage message;
      v1::RankAddress& address = Sign(*message.mutable_rank_address());
      address.set_pid(static_cast<int64_t>(number_));
      address.set_address(fmt::format("{}", number_));
      Say(std::move(message), context);
      break;
    }
    case Phase::kLoading:
      Load(context);
      break;
    case Phase::kComputing:
      Arrive();
      break;
    case Phase::kWriting:
      WriteShard(context);
      break;
    default:
      break;
  }
}

void RankModel::Load(Context& context) {
  const v1::StartRanks& start = begin_.start();
  const uint64_t seed = start.spec().training().seed();
  training_state_ = InitialState(seed);
  if (!start.restore_path().empty()) {
    const StatusOr<Restored> restored =
        world_.storage.Read(start.restore_path(), start.restore_digest());
    if (!restored.ok()) {
      world_.truth.Check(world_.storage.IsCorrupt(start.restore_path()), 11,
                         "restore: " + ToString(restored.status()));
      Fail(restored.status(), false, start.restore_path(), context);
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
  Say(std::move(message), context);
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
    // What could not be saved is asked for again.
    const auto again = due_.find(step_);
    if (again == due_.end() || again->second.attempt() <= last_taken_) return;
    to_write_.push_back(again->second);
    last_taken_ = again->second.attempt();
    Proceed(context);
    return;
  }
  if (step_ >= ticket_end_) return;
  const JobNature& nature = world_.natures.at(group_.job);
  if (world_.random.Chance(world_.faults.crash_per_step) ||
      (nature.crash_at_step == step_ + 1 && rank_ == 0)) {
    Killed();
    const Status sent = context.Send(context.self(), AnyMessage(RankCrashed{device_, life_}));
    world_.truth.Check(sent.ok(), 15, ToString(sent));
    return;
  }
  phase_ = Phase::kComputing;
  // A rank that hangs has no next alarm. Not in an epoch's first step, whose limit is so long that
  // a run would be heartbeats for the most part.
  if (steps_done_ > 0 && world_.random.Chance(world_.faults.hang_per_step)) return;
  Wake(Draw(context, nature.step_time * 9 / 10, nature.step_time), context);
}

void RankModel::Arrive() {
  phase_ = Phase::kReducing;
  const int64_t step = step_ + 1;
  world_.bus.Arrive(
      group_, rank_,
      {.step = step,
       .gradient = Gradient(begin_.start().spec().training().seed(), step, rank_, ranks_),
       .ticket_end = ticket_end_,
       .highest_request = last_request_,
       .knows_intent = due_.contains(step)});
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
  if (rank_ == 0) {
    report.set_loss(Loss(seed, step_));
    report.set_grad_norm(static_cast<double>(group_.epoch));  // so that a row tells whose it is
    report.set_tokens(kSlots);
    if (!to_write_.empty()) report.set_checkpoint_attempt(to_write_.front().attempt());
  }
  Say(std::move(message), context);
  Proceed(context);
}

void RankModel::Proceed(Context& context) {
  if (to_write_.empty()) {
    BeginStep(context);
    return;
  }
  phase_ = Phase::kWriting;
  Wake(Draw(context, milliseconds(10), milliseconds(500)), context);
}

void RankModel::WriteShard(Context& context) {
  const v1::CheckpointIntent intent = to_write_.front();
  to_write_.pop_front();
  then_stop_ = then_stop_ || intent.then_stop();
  v1::WorkerMessage message;
  if (intent.path().empty() || world_.random.Chance(world_.faults.shard_failure)) {
    v1::ShardFailed& failed = Sign(*message.mutable_shard_failed());
    failed.set_attempt(intent.attempt());
    failed.set_reason(intent.path().empty() ? "its intent never came" : "No space left on device");
  } else {
    v1::ShardDone& done = Sign(*message.mutable_shard_done());
    done.set_attempt(intent.attempt());
    done.set_step(step_);
    done.set_incarnation(begin_.incarnation());
    v1::ShardFile& file = *done.add_shards();
    file.set_name(ShardName(rank_));
    file.set_rank(rank_);
    file.set_bytes(8);
    file.set_digest(world_.storage.WriteShard(
        intent.path(), rank_,
        {.step = step_, .state = training_state_, .group_epoch = group_.epoch}));
    done.mutable_state()->set_step(step_);
    done.mutable_state()->set_consumed_samples(step_ * kSlots);
    done.mutable_state()->set_seed(begin_.start().spec().training().seed());
  }
  Say(std::move(message), context);
  Proceed(context);
}

void RankModel::WriteManifest(const v1::WriteManifest& write, Context& context) {
  if (rank_ != 0 || write.group_epoch() != group_.epoch) return;
  v1::WorkerMessage message;
  v1::ManifestDone& done = *message.mutable_manifest_done();
  done.set_job(group_.job);
  done.set_group_epoch(group_.epoch);
  done.set_attempt(write.manifest().attempt());
  done.set_digest(world_.storage.WriteManifest(write.path(), write.manifest()));
  done.set_bytes(8 * ranks_);
  Say(std::move(message), context);
}

void RankModel::Fail(const Status& cause, bool secondary, const std::string& bad_path,
                     Context& context) {
  phase_ = Phase::kFailed;
  // The process lives, but its peers get no answer from it any more.
  world_.bus.Leave(group_, rank_, kPeerLossLimit);
  v1::WorkerMessage message;
  v1::RankFailed& failed = Sign(*message.mutable_rank_failed());
  failed.set_code(static_cast<int>(cause.code()));
  failed.set_message(ToString(cause));
  failed.set_secondary(secondary);
  failed.set_bad_checkpoint_path(bad_path);
  Say(std::move(message), context);
}

void RankModel::Stopped(const std::string& why, Context& context) {
  world_.End(number_, kPeerLossLimit);
  phase_ = Phase::kIdle;
  v1::WorkerMessage message;
  Sign(*message.mutable_rank_stopped()).set_message(why);
  Say(std::move(message), context);
  v1::RankReport idle;
  idle.mutable_idle();
  const Status sent =
      context.Send(context.self(), AnyMessage(RankSays{device_, life_, std::move(idle)}));
  world_.truth.Check(sent.ok(), 15, ToString(sent));
}

void RankModel::Killed() {
  world_.End(number_, kPeerLossLimit);
  phase_ = Phase::kDead;
}

}  // namespace troupe::simulation
