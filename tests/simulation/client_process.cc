#include "tests/simulation/client_process.h"

#include <optional>

#include "base/check.h"
#include "troupe/v1/service.pb.h"

namespace troupe::simulation {
namespace {

using std::chrono::milliseconds;

constexpr Duration kRetry = std::chrono::seconds(5);

struct Due {
  static constexpr std::string_view kMessageName = "client.due";
  size_t call = 0;
};
struct Redial {
  static constexpr std::string_view kMessageName = "client.redial";
};

bool Retryable(StatusCode code) {
  return code == StatusCode::kUnavailable || code == StatusCode::kAborted ||
         code == StatusCode::kResourceExhausted;
}

}  // namespace

Status ClientProcess::Start(Context& context) {
  for (size_t i = 0; i < calls_.size(); ++i) Plan(i, context);
  stream_ = world_.system.network().Dial(node_, context.self(), coordinator_);
  return OkStatus();
}

void ClientProcess::Plan(size_t call, Context& context) {
  due_.resize(calls_.size());
  outcomes_.resize(calls_.size());
  context.SetTimer(calls_[call].after, AnyMessage(Due{call}));
}

Status ClientProcess::Handle(AnyMessage message, Context& context) {
  if (const auto* due = message.As<Due>()) {
    due_[due->call] = true;
    Make(due->call, context);
  } else if (const auto* opened = message.As<StreamOpened>()) {
    if (opened->stream != stream_) return OkStatus();
    open_ = true;
    for (size_t i = 0; i < calls_.size(); ++i) Make(i, context);
  } else if (const auto* closed = message.As<StreamClosed>()) {
    if (closed->stream != stream_) return OkStatus();
    open_ = false;
    context.SetTimer(milliseconds(300), AnyMessage(Redial{}));
  } else if (auto* further = message.As<FurtherCalls>()) {
    for (PlannedCall& call : further->calls) {
      calls_.push_back(std::move(call));
      Plan(calls_.size() - 1, context);
    }
  } else if (message.As<Redial>()) {
    stream_ = world_.system.network().Dial(node_, context.self(), coordinator_);
  } else if (const auto* data = message.As<StreamData>()) {
    const std::optional<ClientFrame> frame = DecodeClientFrame(data->bytes);
    TROUPE_CHECK(frame.has_value());
    if (data->stream == stream_) OnAnswer(*frame, context);
  }
  return OkStatus();
}

bool ClientProcess::MayMake(size_t call) const {
  if (calls_[call].request_id.empty()) return true;
  // The call that it depends on precedes it in the list.
  for (size_t i = 0; i < call; ++i) {
    if (calls_[i].request_id == calls_[call].request_id && !outcomes_[i].answered) return false;
  }
  return true;
}

void ClientProcess::Make(size_t call, Context& context) {
  if (!open_ || !due_[call] || outcomes_[call].answered) return;
  const PlannedCall& planned = calls_[call];
  if (!MayMake(call)) {
    due_[call] = false;
    context.SetTimer(kRetry, AnyMessage(Due{call}));
    return;
  }
  if (planned.kind == CallKind::kResumeJob) observer_.ResumeAsked(planned.job);
  if (planned.kind == CallKind::kDeleteJob) {
    v1::DeleteJobRequest request;
    TROUPE_CHECK(request.ParseFromString(planned.payload));
    observer_.DeletionAsked(planned.job, request.checkpoints());
  }
  const ClientFrame frame{static_cast<char>(planned.kind), call, planned.payload};
  world_.system.network().Write(stream_, context.self(), Encode(frame)).IgnoreError();
}

void ClientProcess::OnAnswer(const ClientFrame& frame, Context& context) {
  TROUPE_CHECK(frame.number < calls_.size());
  const PlannedCall& call = calls_[frame.number];
  const auto code = static_cast<StatusCode>(frame.kind);
  const bool refused = code == StatusCode::kFailedPrecondition;
  const bool waits_for_end =
      refused && call.kind == CallKind::kResumeJob && !observer_.HasEnded(call.job);
  // A job with pinned checkpoints cannot be deleted; otherwise the job or its ranks have not ended
  // yet.
  const bool stays = observer_.HasEnded(call.job) && observer_.HasPinned(call.job);
  const bool is_early = refused && call.kind == CallKind::kDeleteJob && !stays;
  const bool may_come = code == StatusCode::kNotFound && call.kind != CallKind::kPinCheckpoint &&
                        !observer_.IsDeleted(call.job);
  if (call.kind == CallKind::kAlteredJob && !Retryable(code)) {
    world_.truth.Check(code == StatusCode::kAlreadyExists, 13,
                       fmt::format("{} of {} came again with another job: code {}", call.request_id,
                                   call.job, static_cast<int>(code)));
  } else if (code == StatusCode::kOk && call.kind == CallKind::kCreateJob) {
    v1::Job job;
    TROUPE_CHECK(job.ParseFromString(frame.payload));
    observer_.SubmitAcknowledged(call.request_id, job.name().substr(job.name().rfind('/') + 1));
  } else if (code == StatusCode::kOk && call.kind == CallKind::kCancelJob) {
    observer_.CancelAcknowledged(call.job);
  } else if (code == StatusCode::kOk && call.kind == CallKind::kDeleteJob) {
    observer_.DeletionAcknowledged(call.job);
  } else if (may_come || Retryable(code) || waits_for_end || is_early) {
    // The job's submit may still be in flight; a commit to pin may never come.
    due_[frame.number] = false;
    context.SetTimer(kRetry, AnyMessage(Due{frame.number}));
    return;
  }
  outcomes_[frame.number] = {true, code};
}

}  // namespace troupe::simulation
