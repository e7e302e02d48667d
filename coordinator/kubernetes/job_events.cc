#include "coordinator/kubernetes/job_events.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "coordinator/state/job_state.h"

namespace troupe {
namespace {

// Events are named like conditions: "Running".
std::string ReasonOf(std::string_view state) {
  std::string reason;
  for (const char c : state) reason += reason.empty() ? c : static_cast<char>(c - 'A' + 'a');
  return reason;
}

std::string PlaceOf(const TroupeJobStatus& status) {
  std::string note = fmt::format("job {}", status.job_name);
  if (status.step && status.steps)
    note += fmt::format(", step {} of {}", *status.step, *status.steps);
  return note;
}

std::string NoteOf(const TroupeJobStatus& status) {
  const Condition* const accepted = status.Find(kAcceptedCondition);
  const Condition* const finished = status.Find(kFinishedCondition);
  if (status.job_name.empty() && accepted != nullptr) return accepted->message;
  std::string note = PlaceOf(status);
  if (finished != nullptr && !finished->message.empty()) note += ": " + finished->message;
  return note;
}

// Checkpoints are no news, and a move has an event of its own.
bool IsOfTraining(std::string_view state) {
  return state == StateName(v1::JOB_STATE_RUNNING) ||
         state == StateName(v1::JOB_STATE_CHECKPOINTING) || state == kMoving;
}

}  // namespace

std::optional<ObjectEvent> EventOfChange(const TroupeJobStatus& former,
                                         const TroupeJobStatus& status) {
  if (former.state == status.state) return std::nullopt;
  if (IsOfTraining(former.state) && IsOfTraining(status.state)) return std::nullopt;
  if (status.state == kPending && former.state.empty()) return std::nullopt;
  const bool is_warning = status.state == kRejected || status.state == kDeleted ||
                          status.state == StateName(v1::JOB_STATE_FAILED) ||
                          status.state == StateName(v1::JOB_STATE_RECOVERING);
  return ObjectEvent{
      .is_warning = is_warning, .reason = ReasonOf(status.state), .note = NoteOf(status)};
}

ObjectEvent EventOfMove(const TroupeJobStatus& status, const JobFacts& job) {
  return {.reason = ReasonOf(kMoving),
          .note = fmt::format("{}: {}", PlaceOf(status), job.move_reason)};
}

}  // namespace troupe
