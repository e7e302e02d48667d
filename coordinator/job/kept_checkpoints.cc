#include "coordinator/job/kept_checkpoints.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "checkpoint/read/retention.h"
#include "coordinator/job/attempt_writers.h"
#include "coordinator/job/job_record.h"
#include "coordinator/state/event_kind.h"
#include "plan/job/key_warnings.h"
#include "plan/job/violation.h"

namespace troupe {
namespace {

std::vector<v1::CheckpointRecord> RecordsOf(const Job& job) {
  std::vector<v1::CheckpointRecord> records;
  for (const auto& [number, record] : job.checkpoints) records.push_back(record);
  return records;
}

RetentionPolicy PolicyOf(const Job& job) {
  static_assert(kKeptCommitsMin == kNewerVerifiedMin, "the limit of the plan's warning differs");
  return {job.spec.checkpoint().keep_latest_k(), job.spec.checkpoint().keep_every_n_steps()};
}

}  // namespace

bool IsListedAt(const v1::CheckpointRecord& record, const std::string& path) {
  return record.path() == path && (record.state() == v1::CHECKPOINT_STATE_COMMITTED ||
                                   record.state() == v1::CHECKPOINT_STATE_QUARANTINED);
}

void Retire(Job& job, Turn& turn) {
  bool any = false;
  for (const int64_t number : AttemptsToDelete(RecordsOf(job), PolicyOf(job))) {
    v1::CheckpointRecord& record = job.checkpoints.at(number);
    record.set_state(v1::CHECKPOINT_STATE_DELETING);
    turn.effects.writes.PutCheckpoint(record);
    any = true;
  }
  if (any) turn.effects.failpoints_after.push_back("catalog.tombstone.recorded");
}

void SendDeletion(Job& job, const v1::CheckpointRecord& record, Turn& turn) {
  v1::CoordinatorMessage message;
  v1::DeleteCheckpoint* const erase = message.mutable_delete_checkpoint();
  erase->set_job(job.id());
  erase->set_attempt(record.attempt());
  erase->set_path(record.path());
  erase->set_folder_id(record.folder_id());
  *erase->mutable_roots() = job.last_group.roots();
  erase->set_none_writes(record.state() != v1::CHECKPOINT_STATE_ABORTED ||
                         !MayBeWritten(job, record, turn.fleet));
  const std::string& name = job.last_group.ranks(0).worker();
  if (const Worker* const worker = FindWorker(name, turn.fleet)) {
    DeletionRequests& requests = job.deletions[record.attempt()];
    requests.asked.insert(LifeOf(*worker));
    if (erase->none_writes()) {
      requests.session = worker->session;
      requests.time = turn.now;
    }
  }
  SendToWorker(name, std::move(message), turn);
}

void Quarantine(Job& job, const std::string& path, const std::string& reason, Turn& turn) {
  for (auto& [number, record] : job.checkpoints) {
    if (record.path() != path || record.state() != v1::CHECKPOINT_STATE_COMMITTED) continue;
    record.set_state(v1::CHECKPOINT_STATE_QUARANTINED);
    record.set_reason(reason);
    record.set_verified(false);
    record.clear_doubted_by();
    record.clear_doubt();
    turn.effects.writes.PutCheckpoint(record);
    turn.effects.measurements.push_back(CheckpointMeasured{record, 0});
    RecordEvent(job, event::kCheckpointQuarantined, fmt::format("{}: {}", path, reason), turn);
  }
}

bool PinIfRetired(const Job& job, v1::CheckpointRecord& record) {
  const std::vector<int64_t> retired = AttemptsToDelete(RecordsOf(job), PolicyOf(job));
  const bool pins = std::ranges::count(retired, record.attempt()) > 0;
  if (pins) record.set_pinned(true);
  return pins;
}

Status PinCheckpoint(Job& job, const v1::PinCheckpointRequest& request, CallId call, Turn& turn) {
  const bool by_step = request.which_case() == v1::PinCheckpointRequest::kStep;
  if (!by_step && request.which_case() != v1::PinCheckpointRequest::kPath) {
    return RefuseField(StatusCode::kInvalidArgument, "step", "is absent, and so is path");
  }
  v1::CheckpointRecord* chosen = nullptr;
  for (auto& [number, record] : job.checkpoints) {
    if (record.state() != v1::CHECKPOINT_STATE_COMMITTED &&
        record.state() != v1::CHECKPOINT_STATE_QUARANTINED) {
      continue;
    }
    if (by_step ? record.step() == request.step() : record.path() == request.path()) {
      chosen = &record;
    }
  }
  if (chosen == nullptr) {
    return RefuseField(StatusCode::kNotFound, by_step ? "step" : "path",
                       "is {}: job {} has no such checkpoint",
                       by_step ? fmt::format("{}", request.step()) : request.path(), job.id());
  }
  if (chosen->pinned() != request.pinned()) {
    chosen->set_pinned(request.pinned());
    turn.effects.writes.PutCheckpoint(*chosen);
    RecordEvent(job, request.pinned() ? event::kCheckpointPinned : event::kCheckpointUnpinned,
                fmt::format("step {}: {}", chosen->step(), chosen->path()), turn);
  }
  turn.effects.replies.push_back({call, OkStatus(), *chosen});
  Retire(job, turn);
  SendDeletions(job, turn);
  SendVerifications(job, Occasion::kOther, turn);
  return OkStatus();
}

void SendDeletions(Job& job, Turn& turn) {
  if (job.last_group.ranks_size() == 0) return;
  const Worker* const worker = FindWorker(job.last_group.ranks(0).worker(), turn.fleet);
  if (worker == nullptr || worker->session == 0) return;  // after its next Hello
  const auto is_asked = [&](const auto& entry) {
    return entry.second.session == worker->session &&
           turn.now < entry.second.time + kDeleteAgainInterval;
  };
  int64_t asked = std::ranges::count_if(job.deletions, is_asked);
  bool is_full = false;  // one that was not requested on this stream has to wait
  const auto ask = [&](const v1::CheckpointRecord& record) {
    if (record.state() == v1::CHECKPOINT_STATE_ABORTED && MayBeWritten(job, record, turn.fleet))
      return;
    is_full = asked >= kMostDeletionsAsked;
    if (is_full) return;
    SendDeletion(job, record, turn);
    ++asked;
  };
  // Removals that are never answered must not hold up the others, so those that were never
  // requested go first, and then those whose request is the oldest.
  std::vector<std::pair<MonotonicTime, int64_t>> again;
  for (const auto& [number, record] : job.checkpoints) {
    if (is_full) break;
    if (record.state() != v1::CHECKPOINT_STATE_DELETING &&
        record.state() != v1::CHECKPOINT_STATE_ABORTED) {
      continue;
    }
    const auto requests = job.deletions.find(number);
    if (requests == job.deletions.end() || requests->second.session == 0) {
      ask(record);
    } else if (!is_asked(*requests)) {
      again.emplace_back(requests->second.time, number);
    }
  }
  std::ranges::sort(again);
  for (const auto& [time, number] : again) {
    if (is_full) break;
    const bool was_asked = job.deletions.at(number).session == worker->session;
    if (asked < kMostDeletionsAsked || !was_asked) ask(job.checkpoints.at(number));
  }
  if (is_full && !job.delete_again_time) job.delete_again_time = turn.now + kDeleteAgainInterval;
}

void OnCheckpointDeleted(Job& job, const v1::CheckpointDeleted& message, Turn& turn) {
  const auto found = job.checkpoints.find(message.attempt());
  if (found == job.checkpoints.end()) return;
  const v1::CheckpointState state = found->second.state();
  if (state != v1::CHECKPOINT_STATE_DELETING && state != v1::CHECKPOINT_STATE_ABORTED) return;
  if (!message.none_writes()) return;
  turn.effects.writes.DeleteCheckpoint(job.id(), message.attempt());
  job.deletions.erase(message.attempt());
  job.checkpoints.erase(found);
  SendDeletions(job, turn);
}

void SendVerifications(Job& job, Occasion occasion, Turn& turn) {
  if (job.last_group.ranks_size() == 0) return;
  const std::string& name = job.last_group.ranks(0).worker();
  const Worker* const worker = FindWorker(name, turn.fleet);
  if (worker == nullptr || worker->session == 0) return;
  const std::vector<int64_t> wanted = AttemptsToVerify(RecordsOf(job), PolicyOf(job));
  std::erase_if(job.verifications, [&](const auto& entry) {
    const auto found = job.checkpoints.find(entry.first);
    return found == job.checkpoints.end() || found->second.verified() ||
           found->second.state() != v1::CHECKPOINT_STATE_COMMITTED ||
           (entry.second.unreadable && occasion == Occasion::kCommit);
  });
  for (const int64_t number : wanted) {
    const v1::CheckpointRecord& record = job.checkpoints.at(number);
    if (!record.doubted_by().empty()) continue;
    Verification& verification = job.verifications[number];
    if (verification.session == worker->session) continue;
    verification = {LifeOf(*worker), worker->session, false};
    SendToWorker(name, VerificationOf(job, record), turn);
  }
}

v1::CoordinatorMessage VerificationOf(const Job& job, const v1::CheckpointRecord& record) {
  v1::CoordinatorMessage message;
  v1::VerifyCheckpoint* const verify = message.mutable_verify_checkpoint();
  verify->set_job(job.id());
  verify->set_attempt(record.attempt());
  verify->set_path(record.path());
  verify->set_digest(record.digest());
  verify->set_folder_id(record.folder_id());
  *verify->mutable_roots() = job.last_group.roots();
  return message;
}

bool HasCheckpointAt(const Job& job, const std::string& path) {
  return std::ranges::any_of(job.checkpoints,
                             [&](const auto& entry) { return IsListedAt(entry.second, path); });
}

}  // namespace troupe
