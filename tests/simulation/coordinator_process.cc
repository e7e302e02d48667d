#include "tests/simulation/coordinator_process.h"

#include <algorithm>
#include <optional>

#include "tests/simulation/client_frame.h"
#include "tests/simulation/stranger_process.h"

namespace troupe::simulation {
namespace {

struct CoordinatorAlarm {
  static constexpr std::string_view kMessageName = "coordinator.alarm";
};

// Returns the job and group epoch that a rank's message is about if the job's current group has a
// different epoch.
std::optional<std::pair<std::string, uint64_t>> StaleGroupOf(const v1::WorkerMessage& message,
                                                             const CoordinatorState& state) {
  const auto of = [&](const auto& body) -> std::optional<std::pair<std::string, uint64_t>> {
    const auto job = state.jobs.find(body.job());
    if (job == state.jobs.end() || !job->second.group ||
        job->second.group->epoch == body.group_epoch()) {
      return std::nullopt;
    }
    return std::pair(body.job(), body.group_epoch());
  };
  switch (message.message_case()) {
    case v1::WorkerMessage::kRankAddress:
      return of(message.rank_address());
    case v1::WorkerMessage::kRankReady:
      return of(message.rank_ready());
    case v1::WorkerMessage::kStepReport:
      return of(message.step_report());
    case v1::WorkerMessage::kShardDone:
      return of(message.shard_done());
    case v1::WorkerMessage::kManifestDone:
      return of(message.manifest_done());
    case v1::WorkerMessage::kShardFailed:
      return of(message.shard_failed());
    case v1::WorkerMessage::kRankFailed:
      return of(message.rank_failed());
    case v1::WorkerMessage::kRankStopped:
      return of(message.rank_stopped());
    default:
      return std::nullopt;
  }
}

// Whether the message answers a request that the stranger got: to read a doubtful commit.
bool WasAsked(const v1::WorkerMessage& message, const CoordinatorState& state) {
  const v1::CheckpointVerified& answer = message.checkpoint_verified();
  const auto job = state.jobs.find(answer.job());
  if (job == state.jobs.end()) return false;
  const auto reading = job->second.doubt_readings.find(answer.attempt());
  return reading != job->second.doubt_readings.end() && IsStranger(reading->second.reader.name);
}

// Describes the state of a job that a message about its group may change.
std::string Fingerprint(const Job& job) {
  if (!job.group) return "no group";
  std::string text = fmt::format("epoch {} phase {} step {}", job.group->epoch,
                                 static_cast<int>(job.group->phase), job.record.step());
  for (const RankState& rank : job.group->ranks) {
    text += fmt::format(" {}/{}/{}", rank.address, rank.ready, rank.reported_step);
  }
  for (const auto& [number, attempt] : job.attempts)
    text += fmt::format(" {}:{}", number, attempt.votes.size());
  return text;
}

}  // namespace

Status CoordinatorProcess::Start(Context& context) {
  uint64_t leader_epoch = 1;
  if (!bugs_.forget_leader_epoch) {
    TROUPE_ASSIGN_OR_RETURN(leader_epoch, AdvanceLeaderEpoch(&store_));
  }
  TROUPE_ASSIGN_OR_RETURN(const CatalogImage image, ReadCatalog(store_));
  life_ = observer_.CoordinatorStarts(leader_epoch, image);
  hosts_.CoordinatorStarts();
  state_ = Recover(options_, image, leader_epoch, context.Now());
  world_.system.network().Listen(node_, context.self());
  SetAlarm(context);
  return OkStatus();
}

Status CoordinatorProcess::Handle(AnyMessage message, Context& context) {
  if (const auto* data = message.As<StreamData>())
    return HandleBytes(data->stream, data->bytes, context);
  if (const auto* closed = message.As<StreamClosed>()) {
    for (auto call = calls_.begin(); call != calls_.end();) {
      if (call->second.first != closed->stream) {
        ++call;
        continue;
      }
      const CallId id = call->first;
      call = calls_.erase(call);
      TROUPE_RETURN_IF_ERROR(Run(CallAbandoned{id}, context));
    }
    strangers_.erase(closed->stream);
    return Run(SessionClosed{closed->stream.value}, context);
  }
  if (message.As<CoordinatorAlarm>()) {
    alarm_time_ = MonotonicTime::max();
    return Run(Tick{}, context);
  }
  return OkStatus();  // StreamOpened: the peer speaks first
}

Status CoordinatorProcess::HandleBytes(StreamId stream, const std::string& bytes,
                                       Context& context) {
  if (!bytes.empty() && bytes[0] == kClientMark) return HandleCall(stream, bytes, context);
  WorkerSaid said{stream.value, {}};
  if (!said.message.ParseFromString(bytes)) return Internal("a worker's message does not parse");
  if (said.message.has_hello() && IsStranger(said.message.hello().name())) {
    strangers_.insert(stream);
  } else if (strangers_.contains(stream)) {
    if (!WasAsked(said.message, state_)) return HearStranger(std::move(said), context);
  }
  hosts_.Hears(said.message, said.session, state_);
  const std::optional<std::pair<std::string, uint64_t>> stale = StaleGroupOf(said.message, state_);
  if (!stale) return Run(std::move(said), context);
  const std::string before = Fingerprint(state_.jobs.at(stale->first));
  TROUPE_RETURN_IF_ERROR(Run(std::move(said), context));
  const std::string after = Fingerprint(state_.jobs.at(stale->first));
  world_.truth.Check(before == after, 3,
                     fmt::format("{}: a message of group epoch {} changes {} to {}", stale->first,
                                 stale->second, before, after));
  return OkStatus();
}

// A message of a worker without a part in any job must have no effect.
Status CoordinatorProcess::HearStranger(WorkerSaid said, Context& context) {
  const StreamId stream{said.session};
  const std::string what = said.message.ShortDebugString();
  const bool beats = said.message.has_heartbeat();
  Event event{context.Now(), context.WallNanoseconds(), std::move(said)};
  Effects effects = Step(state_, event);
  const bool answered =
      std::any_of(effects.messages.begin(), effects.messages.end(),
                  [&](const ToWorker& out) { return !beats || out.session != stream.value; });
  const bool acts = !effects.writes.empty() || answered || !effects.replies.empty() ||
                    !effects.logs.empty() || !effects.updates.empty();
  world_.truth.Check(!acts, kAuthorization,
                     fmt::format("a stranger's word changes something: {}", what));
  return Perform(effects, context);
}

Status CoordinatorProcess::HandleCall(StreamId stream, const std::string& bytes, Context& context) {
  const std::optional<ClientFrame> frame = DecodeClientFrame(bytes);
  if (!frame) return Internal("a client's frame does not parse");
  const CallId call = next_call_++;
  calls_[call] = {stream, frame->number};
  const std::string& payload = frame->payload;
  switch (static_cast<CallKind>(frame->kind)) {
    case CallKind::kCreateJob:
    case CallKind::kAlteredJob:
      return RunCall<CreateJobCall>(call, payload, context);
    case CallKind::kCancelJob:
      return RunCall<CancelJobCall>(call, payload, context);
    case CallKind::kCreateCheckpoint:
      return RunCall<CreateCheckpointCall>(call, payload, context);
    case CallKind::kPinCheckpoint:
      return RunCall<PinCheckpointCall>(call, payload, context);
    case CallKind::kResumeJob:
      return RunCall<ResumeJobCall>(call, payload, context);
    case CallKind::kRebuildJob:
      return RunCall<RebuildJobCall>(call, payload, context);
    case CallKind::kDeleteJob:
      return RunCall<DeleteJobCall>(call, payload, context);
  }
  return Internal("a client's call is of no kind");
}

template <typename Call>
Status CoordinatorProcess::RunCall(CallId id, const std::string& payload, Context& context) {
  Call call{id, {}};
  if (!call.request.ParseFromString(payload)) return Internal("a client's call does not parse");
  return Run(std::move(call), context);
}

template <typename What>
Status CoordinatorProcess::Run(What what, Context& context) {
  Event event{context.Now(), context.WallNanoseconds(), std::move(what)};
  Effects effects = Step(state_, event);
  return Perform(effects, context);
}

Status CoordinatorProcess::Perform(Effects& effects, Context& context) {
  if (bugs_.ack_before_durable) SendMessages(effects, context);
  observer_.WritesAs(life_, state_.leader_epoch);
  TROUPE_RETURN_IF_ERROR(WriteCatalog(effects.writes, &store_));
  if (!bugs_.ack_before_durable) SendMessages(effects, context);
  observer_.Observe(state_);
  hosts_.Observe(state_, context.Now());
  SetAlarm(context);
  return OkStatus();
}

void CoordinatorProcess::SendMessages(Effects& effects, Context& context) {
  SimulatedNetwork& network = world_.system.network();
  std::map<std::pair<std::string, uint64_t>, std::string> keys;
  for (ToWorker& out : effects.messages) {
    if (out.message.has_start_ranks()) {
      v1::StartRanks& start = *out.message.mutable_start_ranks();
      std::string& key = keys[{start.job(), start.group_epoch()}];
      if (key.empty()) key = fmt::format("{:016x}", context.RandomBits());
      start.set_group_key(key);
    }
    // UNAVAILABLE: the session is over and SessionClosed is in flight.
    network.Write({out.session}, context.self(), out.message.SerializeAsString()).IgnoreError();
    if (out.then_close) network.Close({out.session}, context.self(), OkStatus());
  }
  for (const Reply& reply : effects.replies) {
    const auto call = calls_.find(reply.call);
    if (call == calls_.end()) continue;
    ClientFrame frame{static_cast<char>(reply.status.code()), call->second.second, {}};
    if (!reply.status.ok()) {
      frame.payload = std::string(Message(reply.status));
    } else if (const auto* job = std::get_if<v1::Job>(&reply.value)) {
      frame.payload = job->SerializeAsString();
    } else if (const auto* record = std::get_if<v1::CheckpointRecord>(&reply.value)) {
      frame.payload = record->SerializeAsString();
    }
    network.Write(call->second.first, context.self(), Encode(frame)).IgnoreError();
    calls_.erase(call);
  }
}

void CoordinatorProcess::SetAlarm(Context& context) {
  const std::optional<MonotonicTime> deadline = NextDeadline(state_);
  const MonotonicTime time = deadline.value_or(MonotonicTime::max());
  if (time == alarm_time_) return;
  context.CancelTimer(alarm_);
  alarm_time_ = time;
  if (deadline)
    alarm_ = context.SetTimer(*deadline - context.Now(), AnyMessage(CoordinatorAlarm{}));
}

}  // namespace troupe::simulation
