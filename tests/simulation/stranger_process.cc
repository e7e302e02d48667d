#include "tests/simulation/stranger_process.h"

#include <chrono>
#include <iterator>
#include <utility>

namespace troupe::simulation {
namespace {

struct HeartbeatDue {
  static constexpr std::string_view kMessageName = "stranger.heartbeat_due";
};
struct StrangerRedial {
  static constexpr std::string_view kMessageName = "stranger.redial";
};

}  // namespace

Status StrangerProcess::Start(Context& context) {
  Dial(context);
  context.SetTimer(world_.limits.heartbeat, AnyMessage(HeartbeatDue{}));
  return OkStatus();
}

void StrangerProcess::Dial(Context& context) {
  welcome_ = false;
  stream_ = world_.system.network().Dial(node_, context.self(), coordinator_);
}

Status StrangerProcess::Handle(AnyMessage message, Context& context) {
  if (const auto* opened = message.As<StreamOpened>()) {
    if (opened->stream != stream_) return OkStatus();
    v1::WorkerMessage hello;
    hello.mutable_hello()->set_protocol_version(2);
    hello.mutable_hello()->set_name(kStrangerName);
    hello.mutable_hello()->set_incarnation(1);
    hello.mutable_hello()->set_host(kStrangerName);
    WriteToCoordinator(std::move(hello), context);
  } else if (const auto* data = message.As<StreamData>()) {
    v1::CoordinatorMessage received;
    if (data->stream != stream_ || !received.ParseFromString(data->bytes)) return OkStatus();
    if (received.has_welcome()) {
      welcome_ = true;
      leader_epoch_ = received.welcome().leader_epoch();
    } else if (received.has_verify_checkpoint()) {
      Answer(received.verify_checkpoint(), context);
    }
  } else if (const auto* closed = message.As<StreamClosed>()) {
    if (closed->stream != stream_) return OkStatus();
    welcome_ = false;
    context.SetTimer(world_.limits.heartbeat, AnyMessage(StrangerRedial{}));
  } else if (message.As<StrangerRedial>()) {
    Dial(context);
  } else if (message.As<HeartbeatDue>()) {
    context.SetTimer(world_.limits.heartbeat, AnyMessage(HeartbeatDue{}));
    if (!welcome_) return OkStatus();
    v1::WorkerMessage beat;
    beat.mutable_heartbeat()->set_memory_bytes(1);
    WriteToCoordinator(std::move(beat), context);
    Lie(context);
  }
  return OkStatus();
}

void StrangerProcess::WriteToCoordinator(v1::WorkerMessage message, Context& context) {
  message.set_leader_epoch(leader_epoch_);
  world_.system.network()
      .Write(stream_, context.self(), message.SerializeAsString())
      .IgnoreError();  // UNAVAILABLE: the stream is over, StreamClosed is in flight
}

void StrangerProcess::Answer(const v1::VerifyCheckpoint& request, Context& context) {
  asked_.insert(request.path());
  v1::WorkerMessage message;
  v1::CheckpointVerified& verified = *message.mutable_checkpoint_verified();
  verified.set_job(request.job());
  verified.set_attempt(request.attempt());
  verified.set_path(request.path());
  verified.set_reason("it mounts no folder");
  WriteToCoordinator(std::move(message), context);
}

void StrangerProcess::Lie(Context& context) {
  const auto& jobs = observer_.jobs();
  const auto& checkpoints = observer_.checkpoints();
  if (jobs.empty()) return;
  ++world_.lies;
  const uint64_t kind = context.RandomBits() % 10;
  if (kind < 4 && !checkpoints.empty()) {
    const auto chosen =
        std::next(checkpoints.begin(),
                  static_cast<std::ptrdiff_t>(context.RandomBits() % checkpoints.size()));
    LieAbout(chosen->second, kind, context);
  } else {
    const auto chosen =
        std::next(jobs.begin(), static_cast<std::ptrdiff_t>(context.RandomBits() % jobs.size()));
    LieAbout(chosen->second, kind, context);
  }
}

void StrangerProcess::LieAbout(const v1::CheckpointRecord& record, uint64_t kind,
                               Context& context) {
  if (asked_.contains(record.path())) return;
  v1::WorkerMessage message;
  if (kind == 0) {
    v1::CheckpointDeleted& deleted = *message.mutable_checkpoint_deleted();
    deleted.set_job(record.job());
    deleted.set_attempt(record.attempt());
    deleted.set_path(record.path());
    deleted.set_none_writes(true);
  } else {
    v1::CheckpointVerified& verified = *message.mutable_checkpoint_verified();
    verified.set_job(record.job());
    verified.set_attempt(record.attempt());
    verified.set_path(record.path());
    verified.set_ok(kind == 1);
    verified.set_damaged(kind == 2);
    verified.set_reason("from a stranger");
  }
  WriteToCoordinator(std::move(message), context);
}

void StrangerProcess::LieAbout(const v1::JobRecord& job, uint64_t kind, Context& context) {
  v1::WorkerMessage message;
  const auto sign = [&job](auto& body) -> auto& {
    body.set_job(job.id());
    body.set_group_epoch(job.group_epoch());
    return body;
  };
  switch (kind) {
    case 4:
      sign(*message.mutable_rank_failed()).set_message("from a stranger");
      break;
    case 5:
      sign(*message.mutable_rank_stopped()).set_crashed(true);
      break;
    case 6:
      sign(*message.mutable_step_report()).set_step(job.step() + 1);
      break;
    case 7:
      sign(*message.mutable_manifest_done()).set_attempt(job.last_attempt());
      break;
    case 8:
      sign(*message.mutable_shard_failed()).set_attempt(job.last_attempt());
      break;
    default:
      message.mutable_log_lines()->set_request(1);
      message.mutable_log_lines()->set_last(true);
      break;
  }
  WriteToCoordinator(std::move(message), context);
}

}  // namespace troupe::simulation
