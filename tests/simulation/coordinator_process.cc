#include "tests/simulation/coordinator_process.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "tests/simulation/client_frame.h"
#include "tests/simulation/stranger_process.h"

namespace troupe::simulation {
namespace {

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
    case v1::WorkerMessage::kRankDevice:
      return of(message.rank_device());
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

// A worker's stream as the engine sees it.
class CoordinatorProcess::Sink final : public SessionSink {
 public:
  Sink(SimulatedNetwork& network, Address coordinator, StreamId stream)
      : network_(network), coordinator_(coordinator), stream_(stream) {}
  void Send(v1::CoordinatorMessage message, bool then_close) override {
    // UNAVAILABLE: the session is over and StreamClosed is in flight.
    network_.Write(stream_, coordinator_, message.SerializeAsString()).IgnoreError();
    if (then_close) network_.Close(stream_, coordinator_, OkStatus());
  }

 private:
  SimulatedNetwork& network_;
  const Address coordinator_;
  const StreamId stream_;
};

Status CoordinatorProcess::Start(Context& context) {
  uint64_t leader_epoch = 1;
  if (!bugs_.forget_leader_epoch) {
    TROUPE_ASSIGN_OR_RETURN(leader_epoch, AdvanceLeaderEpoch(&store_));
  }
  TROUPE_ASSIGN_OR_RETURN(const CatalogImage image, ReadCatalog(store_));
  life_ = observer_.CoordinatorStarts(leader_epoch, image);
  hosts_.CoordinatorStarts();
  self_ = context.self();
  EngineActor::Options engine{.store = &store_, .watchers = watchers_, .make_group_key = [this] {
                                return fmt::format("group-{}-{}", life_, ++keys_);
                              }};
  engine_ = std::make_unique<EngineActor>(std::move(engine),
                                          Recover(options_, image, leader_epoch, context.Now()));
  world_.system.network().Listen(node_, self_);
  return engine_->Start(context);
}

Status CoordinatorProcess::Handle(AnyMessage message, Context& context) {
  observer_.WritesAs(life_, engine_->state().leader_epoch);
  if (const auto* data = message.As<StreamData>())
    return HandleBytes(data->stream, data->bytes, context);
  if (const auto* closed = message.As<StreamClosed>()) return HandleClosed(closed->stream, context);
  if (const auto* opened = message.As<StreamOpened>()) {
    return PassToEngine(
        SessionOpened{opened->stream.value,
                      std::make_shared<Sink>(world_.system.network(), self_, opened->stream)},
        context);
  }
  return engine_->Handle(std::move(message), context);  // a timer of the engine
}

Status CoordinatorProcess::HandleBatchEnd(Context& context) {
  observer_.WritesAs(life_, engine_->state().leader_epoch);
  TROUPE_RETURN_IF_ERROR(engine_->HandleBatchEnd(context));
  observer_.Observe(engine_->state());
  hosts_.Observe(engine_->state(), context.Now());
  return OkStatus();
}

template <typename Message>
Status CoordinatorProcess::PassToEngine(Message message, Context& context) {
  TROUPE_RETURN_IF_ERROR(engine_->Handle(AnyMessage(std::move(message)), context));
  if (bugs_.ack_before_durable && !engine_->pending().empty()) AckEarly();
  return OkStatus();
}

Status CoordinatorProcess::HandleClosed(StreamId stream, Context& context) {
  for (auto call = calls_.begin(); call != calls_.end();) {
    if (call->second.first != stream) {
      ++call;
      continue;
    }
    const CallId id = call->first;
    call = calls_.erase(call);
    TROUPE_RETURN_IF_ERROR(PassToEngine(EngineEvent{CallAbandoned{id}}, context));
  }
  strangers_.erase(stream);
  return PassToEngine(EngineEvent{SessionClosed{stream.value}}, context);
}

Status CoordinatorProcess::HandleBytes(StreamId stream, const std::string& bytes,
                                       Context& context) {
  if (!bytes.empty() && bytes[0] == kClientMark) return HandleCall(stream, bytes, context);
  WorkerReported reported{stream.value, {}};
  if (!reported.message.ParseFromString(bytes))
    return Internal("a worker's message does not parse");
  const CoordinatorState& state = engine_->state();
  if (reported.message.has_hello() && IsStranger(reported.message.hello().name())) {
    strangers_.insert(stream);
  } else if (strangers_.contains(stream)) {
    if (!WasAsked(reported.message, state)) return HearStranger(std::move(reported), context);
  }
  hosts_.Hears(reported.message, reported.session, state);
  const std::optional<std::pair<std::string, uint64_t>> stale =
      StaleGroupOf(reported.message, state);
  if (!stale) return PassToEngine(EngineEvent{std::move(reported)}, context);
  const std::string before = Fingerprint(state.jobs.at(stale->first));
  TROUPE_RETURN_IF_ERROR(PassToEngine(EngineEvent{std::move(reported)}, context));
  const std::string after = Fingerprint(state.jobs.at(stale->first));
  world_.truth.Check(before == after, 3,
                     fmt::format("{}: a message of group epoch {} changes {} to {}", stale->first,
                                 stale->second, before, after));
  return OkStatus();
}

// A message of a worker without a part in any job must have no effect.
Status CoordinatorProcess::HearStranger(WorkerReported reported, Context& context) {
  const StreamId stream{reported.session};
  const std::string what = reported.message.ShortDebugString();
  const bool beats = reported.message.has_heartbeat();
  TROUPE_RETURN_IF_ERROR(PassToEngine(EngineEvent{std::move(reported)}, context));
  // A batch is far smaller than the number of events after which the engine writes.
  TROUPE_CHECK(!engine_->pending().empty());
  const Effects& effects = engine_->pending().back();
  const bool answered =
      std::any_of(effects.messages.begin(), effects.messages.end(),
                  [&](const ToWorker& out) { return !beats || out.session != stream.value; });
  const bool acts = !effects.writes.empty() || answered || !effects.replies.empty() ||
                    !effects.logs.empty() || !effects.updates.empty();
  world_.truth.Check(!acts, kAuthorization,
                     fmt::format("a stranger's word changes something: {}", what));
  return OkStatus();
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
  return PassToEngine(
      EngineCall{id, std::move(call), [this](const Reply& reply) { SendReply(reply); }, nullptr},
      context);
}

void CoordinatorProcess::SendReply(const Reply& reply) {
  const auto call = calls_.find(reply.call);
  if (call == calls_.end()) return;
  ClientFrame frame{static_cast<char>(reply.status.code()), call->second.second, {}};
  if (!reply.status.ok()) {
    frame.payload = std::string(Message(reply.status));
  } else if (const auto* job = std::get_if<v1::Job>(&reply.value)) {
    frame.payload = job->SerializeAsString();
  } else if (const auto* record = std::get_if<v1::CheckpointRecord>(&reply.value)) {
    frame.payload = record->SerializeAsString();
  }
  world_.system.network().Write(call->second.first, self_, Encode(frame)).IgnoreError();
  calls_.erase(call);
}

void CoordinatorProcess::AckEarly() {
  const Effects& effects = engine_->pending().back();
  for (const ToWorker& out : effects.messages) {
    if (out.message.has_start_ranks()) continue;  // it has no key yet
    world_.system.network()
        .Write({out.session}, self_, out.message.SerializeAsString())
        .IgnoreError();
  }
  for (const Reply& reply : effects.replies) SendReply(reply);
}

}  // namespace troupe::simulation
