#include "coordinator/state/job_state.h"

#include <algorithm>
#include <cmath>

#include "coordinator/state/stop.h"
#include "plan/job/violation.h"

namespace troupe {

std::optional<StepLoss> StepLossOf(const v1::StepEvent& step) {
  if (step.tokens() == 0 && std::isnan(step.loss())) return std::nullopt;
  return StepLoss{step.step(), step.loss()};
}

Status NoSuchJob(const char* field, const std::string& name) {
  Status status =
      RefuseField(StatusCode::kNotFound, "job", "is \"{}\": there is no such job", name);
  std::vector<Violation> violations = ViolationsOf(status);
  for (Violation& violation : violations) violation.field = field;
  SetViolations(violations, &status);
  return status;
}

bool HasEnded(v1::JobState state) {
  return state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_FAILED ||
         state == v1::JOB_STATE_CANCELLED;
}

bool IsQueued(const Job& job) {
  return !job.group && (job.record.state() == v1::JOB_STATE_QUEUED ||
                        job.record.state() == v1::JOB_STATE_RECOVERING);
}

std::string StateName(v1::JobState state) {
  constexpr size_t kPrefix = sizeof("JOB_STATE_") - 1;
  return v1::JobState_Name(state).substr(kPrefix);
}

const v1::CheckpointRecord* NewestCommit(const Job& job) {
  const v1::CheckpointRecord* newest = nullptr;
  for (const auto& [attempt, record] : job.checkpoints) {
    if (record.state() != v1::CHECKPOINT_STATE_COMMITTED) continue;
    if (newest == nullptr || record.step() >= newest->step()) newest = &record;
  }
  return newest;
}

bool HasQuarantined(const Job& job) {
  return std::any_of(job.checkpoints.begin(), job.checkpoints.end(), [](const auto& entry) {
    return entry.second.state() == v1::CHECKPOINT_STATE_QUARANTINED;
  });
}

bool IsMoving(const Job& job) {
  // A group that had not run yet leaves no step behind, so that its job does not recover.
  const bool is_placed_again =
      job.record.state() == v1::JOB_STATE_RECOVERING && !job.record.recovering();
  return !job.record.move_reason().empty() &&
         (StopsFor(StopPurpose::kMove, job.record) || is_placed_again);
}

v1::JobState ShownState(const Job& job) {
  if (job.group && job.group->phase == GroupPhase::kDraining) return v1::JOB_STATE_RECOVERING;
  if (job.record.state() != v1::JOB_STATE_RUNNING) return job.record.state();
  const bool open = std::any_of(job.attempts.begin(), job.attempts.end(), [](const auto& entry) {
    return entry.second.begun || entry.second.asked;
  });
  return open ? v1::JOB_STATE_CHECKPOINTING : v1::JOB_STATE_RUNNING;
}

}  // namespace troupe
