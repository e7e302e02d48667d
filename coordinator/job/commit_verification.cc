#include "coordinator/job/commit_verification.h"

#include <algorithm>
#include <utility>

#include "coordinator/job/doubts.h"
#include "coordinator/job/job_record.h"
#include "coordinator/job/kept_checkpoints.h"
#include "coordinator/state/event_kind.h"
#include "coordinator/state/job_state.h"
#include "plan/job/violation.h"

namespace troupe {
namespace {

// Deletes the commits that a verification supersedes, and requests the verifications that are still
// needed.
void AfterReading(Job& job, Turn& turn) {
  Retire(job, turn);
  SendDeletions(job, turn);
  SendVerifications(job, Occasion::kOther, turn);
}

}  // namespace

Transition OnCheckpointVerified(Job& job, const v1::CheckpointVerified& message,
                                const std::string& worker, Turn& turn) {
  const auto found = job.checkpoints.find(message.attempt());
  if (found == job.checkpoints.end()) return {};
  v1::CheckpointRecord& record = found->second;
  if (record.state() != v1::CHECKPOINT_STATE_COMMITTED) return {};
  CheckpointVerifiedMeasured measured{job.id()};
  if (message.damaged()) measured.found = CheckpointFound::kDamaged;
  if (message.ok()) measured.found = CheckpointFound::kWhole;
  if (std::optional<Transition> read = OnDoubtRead(job, message, worker, turn)) {
    turn.effects.measurements.push_back(std::move(measured));
    AfterReading(job, turn);
    return *std::move(read);
  }
  const auto asked = job.verifications.find(message.attempt());
  if (asked == job.verifications.end() || asked->second.asked.name != worker) return {};
  Transition transition;
  if (message.damaged()) {
    transition = DoubtCommit(job, message.path(), message.reason(), worker, turn);
  } else if (message.ok()) {
    if (record.verified() || !record.doubted_by().empty()) return {};
    record.set_verified(true);
    turn.effects.writes.PutCheckpoint(record);
    turn.effects.failpoints_after.push_back("catalog.verified.recorded");
  } else {
    asked->second.unreadable = true;
    RecordEvent(job, event::kCheckpointUnreadable,
                fmt::format("{}: it was not verified, so older checkpoints are kept: {}",
                            record.path(), message.reason()),
                turn);
  }
  turn.effects.measurements.push_back(std::move(measured));
  AfterReading(job, turn);
  return transition;
}

Status LiftQuarantine(Job& job, const v1::LiftQuarantineRequest& request, CallId call, Turn& turn) {
  const auto found = std::ranges::find_if(
      job.checkpoints, [&](const auto& entry) { return IsListedAt(entry.second, request.path()); });
  if (found == job.checkpoints.end()) {
    return RefuseField(StatusCode::kNotFound, "path", "is {}: job {} has no such checkpoint",
                       request.path(), job.id());
  }
  v1::CheckpointRecord& record = found->second;
  if (record.digest() != request.digest()) {
    return RefuseField(StatusCode::kFailedPrecondition, "digest",
                       "is {} for the manifest of {}, but the committed digest is {}",
                       request.digest(), record.path(), record.digest());
  }
  if (record.state() == v1::CHECKPOINT_STATE_QUARANTINED) {
    const std::string was = record.reason();
    record.set_state(v1::CHECKPOINT_STATE_COMMITTED);
    record.clear_reason();
    record.set_verified(true);
    const bool pins = PinIfRetired(job, record);
    turn.effects.writes.PutCheckpoint(record);
    RecordEvent(
        job, event::kCheckpointLifted,
        fmt::format(
            "{}: it is intact again; it was quarantined: {}{}", record.path(), was,
            pins ? "; it is pinned, because the job's retention would remove it otherwise" : ""),
        turn);
  } else if (!record.doubted_by().empty()) {
    EndDoubt(job, record.attempt(), "a call of LiftQuarantine", turn);
  }
  turn.effects.replies.push_back({call, OkStatus(), record});
  AfterReading(job, turn);
  return OkStatus();
}

}  // namespace troupe
