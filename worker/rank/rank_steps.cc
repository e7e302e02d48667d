// The steps of a rank: submitted, completed and acted on in the order of
// worker/executor/step_order.h, and reported.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "worker/executor/step_order.h"
#include "worker/rank/rank_run.h"

namespace troupe {

Status RankRun::RunSteps() {
  using Move = StepOrder::Move;
  StepOrder order(executor_->options().control_lag_steps, executor_->applied_step(),
                  begin_.start().spec().training().steps());
  for (Move move = order.Next(); move != Move::kEnd && !directives_.stopped();
       move = order.Next()) {
    switch (move) {
      case Move::kAgree:
        TROUPE_RETURN_IF_ERROR(AgreeOnTicket(&order));
        break;
      case Move::kSubmit:
        TROUPE_RETURN_IF_ERROR(SubmitStep());
        order.Submitted(executor_->DrainsAfter(executor_->submitted_step()));
        break;
      case Move::kComplete:
        TROUPE_RETURN_IF_ERROR(CompleteStep(&order));
        break;
      case Move::kAct: {
        bool then_stop = false;
        for (const v1::CheckpointIntent& intent : due_checkpoints_.at(order.submitted())) {
          StartCheckpoint(intent, order.submitted());
          then_stop |= intent.then_stop();
        }
        due_checkpoints_.erase(order.submitted());
        order.Acted(then_stop);
        break;
      }
      case Move::kEnd:
        break;
    }
  }
  return OkStatus();
}

Status RankRun::AgreeOnTicket(StepOrder* order) {
  around_.progress->Enter(Phase::kWaitTicket);
  const int64_t step = order->submitted() + 1;
  TROUPE_ASSIGN_OR_RETURN(const int64_t end, directives_.WaitForTicket(step));
  // No control word has carried the checkpoints due after the next control_lag_steps steps, so
  // ranks agree on them here.
  std::vector<int64_t> own = {end};
  for (int64_t lag = 0; lag < executor_->options().control_lag_steps; ++lag) {
    const bool is_new = !due_checkpoints_.contains(step + lag);
    const bool known = directives_.InputsFor(step + lag, saver_->busy()).intent_known;
    own.push_back(is_new && known ? 1 : 0);
  }
  TROUPE_ASSIGN_OR_RETURN(const std::vector<int64_t> agreed, executor_->AgreeOnLeast(own));
  order->Agreed(agreed[0]);
  for (size_t i = 1; i < agreed.size(); ++i) {
    const int64_t due = step + static_cast<int64_t>(i) - 1;
    if (agreed[i] != 0) ScheduleCheckpoint(directives_.PopDue(due), due, order);
  }
  return OkStatus();
}

Status RankRun::SubmitStep() {
  saving_.push_back(saver_->busy());
  const bool is_ahead = executor_->submitted_step() > executor_->applied_step();
  if (!is_ahead) (void)communication_.Advance(CollectiveSeconds());
  TROUPE_RETURN_IF_ERROR(executor_->SubmitGradients());
  around_.progress->Enter(Phase::kCheckpoint);
  if (saving_.back()) traces_.steps().Enter(Phase::kCheckpoint, 0, 0);
  saver_->WaitForCopy();
  if (const auto stopped = directives_.stopped(); stopped && !stopped->ok()) return *stopped;
  return executor_->SubmitUpdate(directives_.InputsFor(
      executor_->submitted_step() + 1 + executor_->options().control_lag_steps, saver_->busy()));
}

Status RankRun::CompleteStep(StepOrder* order) {
  TROUPE_ASSIGN_OR_RETURN(const StepResult result, executor_->Complete());
  order->Completed(result.ticket_end);
  for (v1::CheckpointIntent& intent :
       directives_.CheckpointsAfter(result, executor_->options().control_lag_steps)) {
    const int64_t step = intent.step() > 0 ? intent.step() : order->submitted();
    ScheduleCheckpoint(std::move(intent), step, order);
  }
  const auto due = due_checkpoints_.find(result.step);
  Report(result, due == due_checkpoints_.end() ? 0 : due->second.front().attempt());
  return OkStatus();
}

void RankRun::ScheduleCheckpoint(v1::CheckpointIntent intent, int64_t step, StepOrder* order) {
  order->ActAfter(step);
  due_checkpoints_[step].push_back(std::move(intent));
}

void RankRun::StartCheckpoint(const v1::CheckpointIntent& intent, int64_t step) {
  around_.progress->Enter(Phase::kCheckpoint);
  last_attempt_ = std::max(last_attempt_, intent.attempt());
  saver_->StartSave(intent, step);
}

std::array<PurposeSeconds, kPurposes> RankRun::CollectiveSeconds() const {
  return WithDevice(network_->SecondsByPurpose(), backend_->CollectiveStatistics());
}

void RankRun::Report(const StepResult& result, int64_t checkpoint_attempt) {
  // Traces are answered first, because the report of the last step may end the job.
  traces_.AnswerUpTo(result.step);
  v1::WorkerMessage message;
  *message.mutable_step_report() =
      reports_.Make(result, {.checkpoint_attempt = checkpoint_attempt,
                             .writing_attempt = saver_->attempt_in_flight(),
                             .epoch_step = result.step - loaded_step_,
                             .saving = saving_.front(),
                             .communication = communication_.Advance(CollectiveSeconds()),
                             .core_wait_seconds = core_wait_.SecondsSinceLastCall()});
  preparation_.Add(backend_->preparation_counts(), backend_->fallbacks(), host_fallbacks_,
                   message.mutable_step_report());
  if (const auto compilation = backend_->compilation())
    preparation_.AddPrograms(*compilation, message.mutable_step_report());
  saving_.pop_front();
  if (begin_.rank() == 0 && result.event.has_validation_loss()) {
    LogInfo("rank", "step {}: validation loss {}", result.step, result.event.validation_loss());
  }
  Send(std::move(message));
  if (around_.clock->Now() >= metrics_due_) ReportMetrics();
}

}  // namespace troupe
