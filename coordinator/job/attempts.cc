#include "coordinator/job/attempts.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/failure_cause.h"
#include "checkpoint/format/attempt.h"
#include "checkpoint/format/manifest.h"
#include "coordinator/faults/host_faults.h"
#include "coordinator/history/receipt_tally.h"
#include "coordinator/job/attempt_messages.h"
#include "coordinator/job/failed_writes.h"
#include "coordinator/job/images.h"
#include "coordinator/job/job_messages.h"
#include "coordinator/job/job_pace.h"
#include "coordinator/job/job_record.h"
#include "coordinator/job/kept_checkpoints.h"
#include "coordinator/job/timed_checkpoint.h"
#include "coordinator/state/event_kind.h"
#include "coordinator/state/job_failure.h"
#include "coordinator/state/job_state.h"
#include "coordinator/state/stop.h"
#include "coordinator/state/transition.h"
#include "plan/cost/checkpoint_write.h"

namespace troupe {
namespace {

// Wait before a failed save of stopped ranks is repeated. It doubles with each further failure.
constexpr Duration kFirstSaveAgain = std::chrono::seconds(5);
constexpr Duration kSaveAgainLimit = std::chrono::seconds(60);
constexpr Duration kLeastPause = std::chrono::milliseconds(100);
// Number of groups in a row that may hang in the save after the last step. Then the job ends,
// because each of them repeats the steps since the newest commit in vain.
constexpr int64_t kHungFinalSavesMax = 3;

bool AllVoted(const Job& job, const Attempt& attempt) {
  return attempt.votes.size() == static_cast<size_t>(job.plan.ranks_size());
}

// Answers a vote or manifest for a closed attempt with the attempt's result.
void SendFinalized(const Job& job, int64_t attempt, const std::string& worker, Turn& turn) {
  const auto record = job.checkpoints.find(attempt);
  const bool committed =
      record != job.checkpoints.end() && record->second.state() != v1::CHECKPOINT_STATE_ABORTED;
  SendToWorker(worker, FinalizedOf(job, job.group->epoch, attempt, committed), turn);
}

void Begin(Job& job, Attempt& attempt, Turn& turn) {
  job.group->last_progress = turn.now;
  if (attempt.begun) return;
  attempt.begun = true;
  attempt.begun_time = turn.now;
}

// Marks the attempt ABORTED, so that its files will be deleted, removes it from job.attempts and
// returns it.
Attempt MarkAborted(Job& job, int64_t number, const std::string& reason, Turn& turn) {
  Attempt attempt = std::move(job.attempts.at(number));
  job.attempts.erase(number);
  attempt.record.set_state(v1::CHECKPOINT_STATE_ABORTED);
  attempt.record.set_reason(reason);
  turn.effects.writes.PutCheckpoint(attempt.record);
  job.checkpoints[number] = attempt.record;
  return attempt;
}

// Marks the attempt ABORTED and notifies the watchers and its callers.
void RecordAbort(Job& job, int64_t number, const std::string& reason, Turn& turn) {
  const Attempt attempt = MarkAborted(job, number, reason, turn);
  turn.effects.measurements.push_back(CheckpointMeasured{attempt.record});
  RecordEvent(job, event::kCheckpointAborted, fmt::format("attempt {}: {}", number, reason), turn);
  for (const CallId call : attempt.callers) {
    ReplyWithError(
        call, Aborted("checkpoint attempt {} of job {} was aborted: {}", number, job.id(), reason),
        turn);
  }
}

// Called when a rank takes part in requested attempt `number`. Ranks know only the highest
// requested attempt, so lower ones that no rank has begun are aborted and their callers move to
// this one.
void ReplaceLowerRequests(Job& job, int64_t number, Turn& turn) {
  if (!job.attempts.at(number).asked) return;
  std::vector<int64_t> passed;
  for (const auto& [lower, attempt] : job.attempts) {
    if (lower < number && attempt.asked && !attempt.begun) passed.push_back(lower);
  }
  for (const int64_t lower : passed) {
    Attempt replaced = MarkAborted(job, lower, fmt::format("attempt {} replaced it", number), turn);
    std::vector<CallId>& callers = job.attempts.at(number).callers;
    callers.insert(callers.end(), replaced.callers.begin(), replaced.callers.end());
    SendToGroup(job, FinalizedOf(job, job.group->epoch, lower, false), turn);
  }
}

void SaveAgainLater(Job& job, Turn& turn) {
  Group& group = *job.group;
  const int doublings = std::min(group.failed_saves++, 8);
  if (!group.unsaved_since) group.unsaved_since = turn.now;
  const Duration pause =
      std::min<Duration>(kFirstSaveAgain * (int64_t{1} << doublings), kSaveAgainLimit);
  // Not much later than the deadline, at which images are taken instead.
  group.save_again_time =
      std::min(turn.now + pause, std::max(*FinalSaveDeadline(job), turn.now + kLeastPause));
  group.last_progress = turn.now;
}

// Notes that a rank has answered a save that was aborted without its answer.
void NoteLateAnswer(Job& job, int64_t attempt, int32_t rank, Turn& turn) {
  Group& group = *job.group;
  if (attempt != group.hung_save || group.hung_ranks.erase(rank) == 0) return;
  if (!group.hung_ranks.empty()) return;
  if (group.save_again_time) group.save_again_time = turn.now;
  if (group.image_taking && !group.image_taking->failure.empty())
    AbandonImages(job, group.image_taking->failure, turn);
}

// Returns, for example, "rank 1 on worker-1, rank 2 on worker-2".
std::string RanksText(const Job& job, const std::set<int32_t>& ranks) {
  std::vector<std::string> parts;
  for (const int32_t rank : ranks) {
    parts.push_back(fmt::format("rank {} on {}", rank, job.plan.ranks(rank).worker()));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

Attempt& RecordIntent(Job& job, int64_t step, Turn& turn) {
  const int64_t number = job.record.last_attempt() + 1;
  job.record.set_last_attempt(number);
  Attempt& attempt = job.attempts[number];
  attempt.asked = step == 0;
  attempt.asked_time = turn.now;
  v1::CheckpointRecord& record = attempt.record;
  record.set_job(job.id());
  record.set_attempt(number);
  record.set_group_epoch(job.group->epoch);
  record.set_step(step);
  record.set_path(fmt::format("{}/{}/{}", job.spec.checkpoint().folder(), job.id(),
                              AttemptName(step, job.group->epoch, number, turn.wall_ns)));
  record.set_folder_id(job.record.folder_id());
  record.set_state(v1::CHECKPOINT_STATE_WRITING);
  record.set_intent_wall_time_ns(turn.wall_ns);
  *record.mutable_layout() = job.plan.mesh();
  record.set_expected_shards(job.plan.ranks_size());
  turn.effects.writes.PutCheckpoint(record);
  SaveRecord(job, turn);
  turn.effects.failpoints_after.push_back("catalog.intent.recorded");
  return attempt;
}

Attempt& RequestCheckpoint(Job& job, Turn& turn) {
  Attempt& attempt = RecordIntent(job, 0, turn);
  if (job.group->phase == GroupPhase::kRunning) SendToGroup(job, RequestOf(job, attempt), turn);
  return attempt;
}

Attempt& JoinOrRequestCheckpoint(Job& job, Turn& turn) {
  for (auto& [number, attempt] : job.attempts) {
    if (attempt.asked && !attempt.begun) return attempt;
  }
  return RequestCheckpoint(job, turn);
}

std::optional<MonotonicTime> AttemptDeadline(const Job& job, const Attempt& attempt,
                                             const TimeLimits& limits) {
  const Duration limit =
      limits.checkpoint_attempt + FromSeconds(CheckpointWriteSeconds(job.spec, job.plan));
  if (attempt.begun) return attempt.begun_time + limit;
  // The ranks take part after their next step, which may last up to the hang limit.
  if (attempt.asked) return attempt.asked_time + HangLimitOf(job, limits) + limit;
  return std::nullopt;
}

Transition OnShardDone(Job& job, const v1::ShardDone& vote, const std::string& worker, Turn& turn) {
  const GroupPhase phase = job.group->phase;
  if (phase != GroupPhase::kRunning && phase != GroupPhase::kAdopting) return {};
  job.group->ranks[static_cast<size_t>(vote.rank())].last_answer = turn.now;
  const auto found = job.attempts.find(vote.attempt());
  if (found == job.attempts.end()) {
    NoteLateAnswer(job, vote.attempt(), vote.rank(), turn);
    SendFinalized(job, vote.attempt(), worker, turn);
    return {};
  }
  Attempt& attempt = found->second;
  if (attempt.votes.contains(vote.rank())) {
    AskForManifest(job, attempt, turn);
    return {};
  }
  if (attempt.asked && attempt.record.step() == 0) attempt.record.set_step(vote.step());
  if (vote.step() != attempt.record.step() || vote.state().step() != vote.step()) {
    return AbortAttempt(
        job, vote.attempt(),
        fmt::format(
            "rank {} voted for step {} with the state of step {}, but the attempt is for step {}",
            vote.rank(), vote.step(), vote.state().step(), attempt.record.step()),
        turn);
  }
  Begin(job, attempt, turn);
  ReplaceLowerRequests(job, vote.attempt(), turn);
  attempt.votes[vote.rank()] = vote;
  if (AllVoted(job, attempt)) {
    turn.effects.failpoints_after.push_back("catalog.votes.complete");
    const size_t bytes = ManifestOf(job, attempt).ByteSizeLong();
    if (bytes > kCheckpointMessageBytesMax) {
      return AbortAttempt(job, vote.attempt(),
                          fmt::format("its manifest has {} bytes, above the limit of {}", bytes,
                                      kCheckpointMessageBytesMax),
                          turn);
    }
  }
  AskForManifest(job, attempt, turn);
  return {};
}

void AskForManifest(const Job& job, const Attempt& attempt, Turn& turn) {
  if (!AllVoted(job, attempt)) return;
  v1::CoordinatorMessage message;
  v1::WriteManifest* const write = message.mutable_write_manifest();
  write->set_job(job.id());
  write->set_group_epoch(job.group->epoch);
  *write->mutable_manifest() = ManifestOf(job, attempt);
  write->set_path(attempt.record.path());
  SendToWorker(job.plan.ranks(0).worker(), std::move(message), turn);
}

Transition OnShardFailed(Job& job, const v1::ShardFailed& message, Turn& turn) {
  job.group->ranks[static_cast<size_t>(message.rank())].last_answer = turn.now;
  const auto found = job.attempts.find(message.attempt());
  if (found == job.attempts.end()) {
    NoteLateAnswer(job, message.attempt(), message.rank(), turn);
    SendFinalized(job, message.attempt(), job.plan.ranks(message.rank()).worker(), turn);
    return {};
  }
  Begin(job, found->second, turn);
  ReplaceLowerRequests(job, message.attempt(), turn);
  Transition aborted = AbortAttempt(
      job, message.attempt(), fmt::format("rank {}: {}", message.rank(), message.reason()), turn);
  if (message.cause() == cause::kPathOutsideRoot) {
    return Breakdown{.failure = MakeFailure(message.cause(), message.reason(), message.rank(),
                                            job.plan.ranks(message.rank()).worker()),
                     .fatal = true};
  }
  Transition moved = OnFailedWrite(job, message, turn);
  return StopsFor(StopPurpose::kCancelAnyway, job.record) ? std::move(aborted) : std::move(moved);
}

Transition OnManifestDone(Job& job, const v1::ManifestDone& message, Turn& turn) {
  const auto found = job.attempts.find(message.attempt());
  if (found == job.attempts.end()) {
    SendFinalized(job, message.attempt(), job.plan.ranks(0).worker(), turn);
    return {};
  }
  // A manifest without all votes must be one of a former leader. The votes will be resent, and then
  // the manifest is requested again.
  if (!AllVoted(job, found->second) || job.group->phase == GroupPhase::kDraining) return {};
  Attempt attempt = std::move(found->second);
  job.attempts.erase(found);
  turn.effects.failpoints_before.push_back("catalog.commit.before");
  turn.effects.failpoints_after.push_back("catalog.commit.after");
  FlushReports(job, turn);
  v1::CheckpointRecord& record = attempt.record;
  record.set_state(v1::CHECKPOINT_STATE_COMMITTED);
  record.set_digest(message.digest());
  record.set_bytes(message.bytes());
  record.set_commit_wall_time_ns(turn.wall_ns);
  record.set_duration_seconds(ToSeconds(turn.now - attempt.begun_time));
  turn.effects.writes.PutCheckpoint(record);
  job.checkpoints[record.attempt()] = record;
  job.group->last_progress = turn.now;
  job.failed_writes = {};
  job.record.set_hung_final_saves(0);
  turn.reschedule |= job.smaller || AnyDrains(turn.fleet);  // the job may grow or move now
  CountFromCheckpoint(job, attempt.begun_time, turn);
  if (record.step() >= job.images.step()) DropImages(job, turn);
  Retire(job, turn);
  RecordEvent(
      job, event::kCheckpointCommitted,
      fmt::format("step {}, attempt {}: {}", record.step(), record.attempt(), record.path()), turn);
  SendToGroup(job, FinalizedOf(job, job.group->epoch, record.attempt(), true), turn);
  SendDeletions(job, turn);
  SendVerifications(job, Occasion::kCommit, turn);
  CheckpointMeasured measured{record};
  for (const auto& [rank, vote] : attempt.votes) {
    measured.stall_seconds = std::max(measured.stall_seconds, vote.stall_seconds());
    ++measured.writes[vote.write_method()];
    TallyWrite(vote.write_method(), &job.tally);
  }
  turn.effects.writes.PutTally(job.id(), job.tally);
  turn.effects.measurements.push_back(std::move(measured));
  for (const CallId call : attempt.callers)
    turn.effects.replies.push_back({call, OkStatus(), record});
  if (IsFinished(job)) return Success(job);
  const std::optional<Stop> stop = StopOf(job.record);
  if (!stop || stop->attempt != record.attempt()) return {};
  return AfterCommit(stop->purpose, record.step());
}

Transition AbortAttempt(Job& job, int64_t number, const std::string& reason, Turn& turn) {
  const Attempt& attempt = job.attempts.at(number);
  const bool then_stop = ThenStop(job, attempt);
  const bool begun = attempt.begun;
  const bool stops = number == StopAttempt(job.record);
  RecordAbort(job, number, reason, turn);
  PostponeTimedCheckpoint(job, turn);
  SendToGroup(job, FinalizedOf(job, job.group->epoch, number, false), turn);
  // Deletes at once to free space. Files that a slower rank writes later are deleted once it can no
  // longer write.
  SendDeletion(job, job.checkpoints.at(number), turn);
  SendDeletions(job, turn);
  if (!then_stop) return {};
  if (StopsFor(StopPurpose::kCancelAnyway, job.record)) return CancelWithoutCommit(job, reason);
  if (stops && !begun) {
    CallOffStop(job, reason, turn);
    return {};
  }
  for (const CancelCaller& caller : std::exchange(job.cancel_callers, {})) {
    ReplyWithError(caller.call,
                   Aborted("the checkpoint of job {} was aborted: {}; its ranks have stopped, and "
                           "the checkpoint is retried; to give it up, cancel the job without a "
                           "checkpoint (troupe cancel --now)",
                           job.id(), reason),
                   turn);
  }
  job.group->save_failure = reason;
  SaveAgainLater(job, turn);
  return {};
}

Transition AbortLateAttempt(Job& job, int64_t number, Turn& turn) {
  const Attempt& attempt = job.attempts.at(number);
  const MonotonicTime begin = attempt.begun ? attempt.begun_time : attempt.asked_time;
  std::string reason = fmt::format("not committed within {:.0f} s", ToSeconds(turn.now - begin));
  if (!attempt.begun) return AbortAttempt(job, number, reason, turn);
  // Every rank takes part once one has begun.
  std::set<int32_t> silent;
  for (const v1::RankPlacement& placement : job.plan.ranks()) {
    if (!attempt.votes.contains(placement.rank())) silent.insert(placement.rank());
  }
  if (!silent.empty()) reason += "; no message came from " + RanksText(job, silent);
  std::set<std::string> laid;
  for (const int32_t rank : silent) {
    // A rank that has answered another attempt meanwhile writes one after the other, and writes.
    const bool writes = job.group->ranks[static_cast<size_t>(rank)].last_answer >= begin;
    if (writes && !turn.options.bugs.blame_writers_in_turn) continue;
    if (laid.insert(job.plan.ranks(rank).worker()).second) LayFailedWrite(job, rank, reason, turn);
  }
  if (ThenStop(job, attempt)) {
    Group& group = *job.group;
    if (!group.unsaved_since) group.unsaved_since = begin;
    group.hung_save = number;
    group.hung_ranks = std::move(silent);
  }
  return AbortAttempt(job, number, reason, turn);
}

Breakdown CountHungSave(Job& job) {
  const std::set<int32_t>& hung = job.group->hung_ranks;
  std::set<std::string> workers;
  for (const int32_t rank : hung) workers.insert(job.plan.ranks(rank).worker());
  const std::string worker = workers.size() == 1 ? *workers.begin() : "";
  const std::optional<ImageTaking>& taking = job.group->image_taking;
  std::string text = fmt::format(
      "neither the checkpoint for which its ranks had stopped nor their images could be written: "
      "{} did not answer{}; {}",
      RanksText(job, hung),
      taking && !taking->failure.empty() ? "; no image of " + taking->failure : "",
      job.group->save_failure);
  // Ranks that stopped early, to grow or to be cancelled, continue in the next group.
  const bool last = StopAttempt(job.record) == 0;
  if (last) job.record.set_hung_final_saves(job.record.hung_final_saves() + 1);
  const bool fatal = last && job.record.hung_final_saves() >= kHungFinalSavesMax;
  if (fatal) {
    text = fmt::format(
        "{} groups in a row hung while saving after the last step; when the storage answers again, "
        "`troupe resume` continues from the newest commit; {}",
        kHungFinalSavesMax, text);
  }
  return {.failure = MakeFailure(cause::kCheckpointFailed, text, -1, worker), .fatal = fatal};
}

void SaveAgainIfUnsaved(Job& job, Turn& turn) {
  const bool stopped = job.record.step() >= job.steps() || StopAttempt(job.record) != 0;
  if (!stopped || !job.has_folder() || job.group->save_again_time || job.group->image_taking)
    return;
  bool open = false;
  for (auto& [number, attempt] : job.attempts) {
    if (!ThenStop(job, attempt)) continue;
    open = true;
    if (!attempt.asked && attempt.record.step() <= job.record.step()) Begin(job, attempt, turn);
  }
  if (!open) SaveAgainLater(job, turn);
}

Transition SaveAgain(Job& job, Turn& turn) {
  Group& group = *job.group;
  group.save_again_time.reset();
  for (const auto& [number, attempt] : job.attempts) {
    if (attempt.begun && ThenStop(job, attempt)) return {};
  }
  const int64_t step = job.record.step();
  const bool behind =
      std::any_of(group.ranks.begin(), group.ranks.end(),
                  [step](const RankState& rank) { return rank.reported_step > step; });
  const bool over = group.unsaved_since && turn.now >= *FinalSaveDeadline(job);
  const bool hangs = !group.hung_ranks.empty();
  if (step == 0 || behind) {
    // Rank 0 has not reached the step at which the others stopped.
    if (over && hangs) return CountHungSave(job);
    // Rank 0's report of the step at which the ranks stopped is still in flight.
    SaveAgainLater(job, turn);
    return {};
  }
  if (over) {
    RequestImages(job, turn);
    return {};
  }
  if (hangs) {
    if (StopsFor(StopPurpose::kCancelAnyway, job.record))
      return CancelWithoutCommit(job, group.save_failure);
    SaveAgainLater(job, turn);
    return {};
  }
  if (const auto stop = StopOf(job.record); stop && stop->attempt != 0)
    StopAfterNextAttempt(stop->purpose, &job.record);
  Attempt& attempt = RecordIntent(job, step, turn);
  Begin(job, attempt, turn);
  SendToGroup(job, RequestOf(job, attempt), turn);
  return {};
}

void CallOffStop(Job& job, const std::string& reason, Turn& turn) {
  const std::optional<Stop> stop = StopOf(job.record);
  if (!stop || stop->attempt == 0) return;
  SetStop(std::nullopt, &job.record);
  RecordEvent(job, CalledOffEvent(stop->purpose), reason, turn);
  turn.reschedule = true;  // it may have to stop again
  for (const CancelCaller& caller : std::exchange(job.cancel_callers, {})) {
    ReplyWithError(caller.call, Aborted("job {} is not cancelled: {}", job.id(), reason), turn);
  }
}

void DropAttempts(Job& job, const std::string& reason, Turn& turn) {
  std::vector<int64_t> numbers;
  for (const auto& [number, attempt] : job.attempts) numbers.push_back(number);
  for (const int64_t number : numbers) {
    const Attempt& attempt = job.attempts.at(number);
    const bool reached = !attempt.asked && attempt.record.step() <= job.record.step();
    if (attempt.begun || attempt.asked || reached) {
      RecordAbort(job, number, reason, turn);
    } else {
      MarkAborted(job, number, reason, turn);
    }
  }
}

void SkipPassedIntents(Job& job, int64_t reported_step, Turn& turn) {
  // Every report about an attempt of step s arrives before the report of step s+2: a rank sends its
  // vote, or reports with step s or s+1 that the attempt has begun, before it continues.
  std::vector<int64_t> passed;
  for (const auto& [number, attempt] : job.attempts) {
    if (!attempt.asked && !attempt.begun && attempt.record.step() + 2 <= reported_step)
      passed.push_back(number);
  }
  for (const int64_t number : passed) {
    const int64_t step = job.attempts.at(number).record.step();
    if (job.attempts.at(number).inherited) {
      MarkAborted(job, number, "no message came from it after the coordinator's restart", turn);
    } else {
      turn.effects.writes.DeleteCheckpoint(job.id(), number);
      job.attempts.erase(number);
    }
    job.record.set_skipped_checkpoints(job.record.skipped_checkpoints() + 1);
    turn.effects.measurements.push_back(CheckpointSkipped{job.id()});
    RecordEvent(job, event::kCheckpointSkipped, fmt::format("the one due after step {}", step),
                turn);
  }
  if (!passed.empty()) SendDeletions(job, turn);
}

}  // namespace troupe
