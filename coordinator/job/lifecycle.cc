#include "coordinator/job/lifecycle.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/failure_cause.h"
#include "coordinator/job/attempt_writers.h"
#include "coordinator/job/attempts.h"
#include "coordinator/job/deletion.h"
#include "coordinator/job/doubts.h"
#include "coordinator/job/growth.h"
#include "coordinator/job/images.h"
#include "coordinator/job/job_end.h"
#include "coordinator/job/job_messages.h"
#include "coordinator/job/job_pace.h"
#include "coordinator/job/job_record.h"
#include "coordinator/job/kept_checkpoints.h"
#include "coordinator/job/move.h"
#include "coordinator/job/recovery.h"
#include "coordinator/job/running_layout.h"
#include "coordinator/job/tickets.h"
#include "coordinator/job/timed_checkpoint.h"
#include "coordinator/state/event_kind.h"
#include "coordinator/state/job_failure.h"
#include "coordinator/state/stop.h"

namespace troupe {
namespace {

// Ends the group without a failure and queues the job.
void EndGroup(Job& job, const std::string& reason, Turn& turn) {
  FlushReports(job, turn);
  DropAttempts(job, "the ranks stopped: the job " + reason, turn);
  v1::CoordinatorMessage stop;
  stop.mutable_stop_ranks()->set_job(job.id());
  stop.mutable_stop_ranks()->set_group_epoch(job.group->epoch);
  stop.mutable_stop_ranks()->set_reason(reason);
  SendToGroup(job, stop, turn);
  DropLeftImages(job, turn);
  job.group.reset();
  SetStopped(&job.record);
  job.record.set_recovering(true);
  job.record.set_state(v1::JOB_STATE_RECOVERING);
  turn.reschedule = true;
}

// Ends the group after the checkpoint of `step` was committed, and queues the job, which becomes
// RECOVERING without counting a restart. REQUIRES: the ranks stop for StopPurpose::kGrow, and the
// group runs.
void EndForGrowth(Job& job, int64_t step, Turn& turn) {
  const std::string reason =
      fmt::format("grows to {} ranks after step {}", SubmittedPlan(job).ranks_size(), step);
  EndGroup(job, reason, turn);
  // The devices may be gone again before the job is placed.
  job.shrink_time = turn.now + turn.limits().layout_patience;
  RecordEvent(job, event::kGrowing, reason, turn);
}

// Ends the group because workers of it are draining, and queues the job, which becomes RECOVERING
// without counting a restart. `step`: as in GroupMoves.
void EndForMove(Job& job, int64_t step, Turn& turn) {
  const bool has_run = step > 0;
  const bool recovering = has_run || job.record.recovering();
  const std::string reason =
      MoveText(job, turn.fleet) + (has_run ? fmt::format(", after step {}", step) : "");
  EndGroup(job, reason, turn);
  job.record.set_move_reason(reason);
  job.record.set_recovering(recovering);
  if (has_run) job.record.set_moves(job.record.moves() + 1);
  // By then its ranks have stopped, and the devices that it keeps are free.
  job.choose_time = turn.now + turn.limits().abort + turn.limits().heartbeat;
  if (job.spec.fault_tolerance().allow_layout_change())
    job.shrink_time = turn.now + turn.limits().layout_patience;
  RecordEvent(job, event::kMoving, reason, turn);
}

// Continues the job from its ranks' images, without growing or moving, because the checkpoint could
// not be written. REQUIRES: as for EndForGrowth, and ContinuesFromImages.
void GoOnFromImages(Job& job, Turn& turn) {
  const StopPurpose purpose = StopOf(job.record)->purpose;
  const std::string reason = fmt::format(
      "does not {}, because step {} could not be saved: {}; it continues from the images that "
      "its ranks keep on their workers",
      purpose == StopPurpose::kMove ? "move" : "grow", job.images.step(), job.group->save_failure);
  EndGroup(job, reason, turn);
  SetStop(std::nullopt, &job.record);
  RecordEvent(job, CalledOffEvent(purpose), reason, turn);
}

}  // namespace

void Apply(Job& job, Transition transition, Turn& turn) {
  if (auto* const breakdown = std::get_if<Breakdown>(&transition)) {
    BreakGroup(job, std::move(*breakdown), turn);
  } else if (const auto* const end = std::get_if<JobEnd>(&transition)) {
    EndJob(job, *end, turn);
  } else if (const auto* const committed = std::get_if<GrowthCommitted>(&transition)) {
    EndForGrowth(job, committed->step, turn);
  } else if (const auto* const moves = std::get_if<GroupMoves>(&transition)) {
    EndForMove(job, moves->step, turn);
  } else if (std::holds_alternative<StopUnsaved>(transition)) {
    GoOnFromImages(job, turn);
  } else if (std::holds_alternative<CommitQuarantined>(transition)) {
    FailIfNoCommitIsLeft(job, turn);
  }
}

namespace {

void OnRunningTime(Job& job, Turn& turn) {
  if (job.group->save_again_time && turn.now >= *job.group->save_again_time)
    Apply(job, SaveAgain(job, turn), turn);
  if (!job.group) return;
  if (job.group->image_taking && turn.now >= job.group->image_taking->deadline) {
    if (!job.group->hung_ranks.empty()) return Apply(job, CountHungSave(job), turn);
    AbandonImages(job, "not every rank has answered", turn);
  }
  std::vector<int64_t> late;
  const bool open = job.group->save_again_time || job.group->image_taking || HoldsUpRanks(job);
  for (const auto& [number, attempt] : job.attempts) {
    const auto deadline = AttemptDeadline(job, attempt, turn.limits());
    if (deadline && turn.now >= *deadline) late.push_back(number);
  }
  // Aborting one attempt may also abort others, or end the job.
  for (const int64_t number : late) {
    if (!job.group || !job.attempts.contains(number)) continue;
    Apply(job, AbortLateAttempt(job, number, turn), turn);
  }
  if (!job.group || job.group->phase != GroupPhase::kRunning) return;
  if (const auto due = TimedCheckpointDue(job); due && turn.now >= *due)
    RequestCheckpoint(job, turn);
  const Duration limit = HangLimitOf(job, turn.limits());
  if (!open && turn.now >= job.group->last_progress + limit) {
    const auto text = fmt::format("no rank reported a step for {:.1f} s", ToSeconds(limit));
    return BreakGroup(job, {MakeFailure(cause::kHang, text), false, false}, turn);
  }
  RenewTicket(job, turn);
}

// The workers whose ranks have not been confirmed since the coordinator restarted.
std::string MissingWorkers(const Job& job) {
  std::set<std::string> missing;
  for (size_t rank = 0; rank < job.group->ranks.size(); ++rank) {
    if (!job.group->ranks[rank].held)
      missing.insert(job.plan.ranks(static_cast<int>(rank)).worker());
  }
  return fmt::format("{}", fmt::join(missing, ", "));
}

// Names the awaited ranks: those without an address, which a rank states once it has loaded, or,
// once all have one, those that are not ready. The failure names their worker if they share one.
v1::Failure LateStart(const Job& job) {
  const bool starts = job.group->phase == GroupPhase::kStarting;
  std::set<std::string> workers;
  std::vector<int> late;
  for (size_t rank = 0; rank < job.group->ranks.size(); ++rank) {
    const RankState& state = job.group->ranks[rank];
    if (starts ? !state.address.empty() : state.ready) continue;
    late.push_back(static_cast<int>(rank));
    workers.insert(job.plan.ranks(late.back()).worker());
  }
  const std::string text =
      fmt::format("not every rank was ready within {:.0f} s: these ranks {}: {}",
                  ToSeconds(job.group->start_limit),
                  starts ? "had not prepared their programs and loaded their state"
                         : "had loaded their state but were not ready",
                  fmt::join(late, ", "));
  return MakeFailure(cause::kStartTimeout, text, late.size() == 1 ? late.front() : -1,
                     workers.size() == 1 ? *workers.begin() : std::string());
}

}  // namespace

void OnJobTime(Job& job, Turn& turn) {
  if (!job.unflushed.empty() && turn.now >= job.flush_time) FlushReports(job, turn);
  AdvanceDoubts(job, turn);
  if (job.delete_again_time && turn.now >= *job.delete_again_time) {
    job.delete_again_time.reset();
    if (job.record.deleting()) job.delete_again_time = turn.now + kDeleteAgainInterval;
    SendDeletions(job, turn);
  }
  if (job.place_not_before && turn.now >= *job.place_not_before) {
    job.place_not_before.reset();
    turn.reschedule = true;
  }
  if (job.choose_time && turn.now >= *job.choose_time) {
    job.choose_time.reset();
    turn.reschedule = true;
  }
  if (job.shrink_time && turn.now >= *job.shrink_time) {
    job.shrink_time.reset();
    job.may_shrink = true;
    turn.reschedule = true;
  }
  if (job.image_look_time && turn.now >= *job.image_look_time)
    Apply(job, LookForImages(job, turn), turn);
  if (!job.group) return;
  if (job.group->phase == GroupPhase::kRunning) {
    OnRunningTime(job, turn);
    BeginGrowthIfDue(job, turn);
    return;
  }
  if (turn.now < job.group->deadline) return;
  switch (job.group->phase) {
    case GroupPhase::kAdopting:
      BreakGroup(job,
                 {MakeFailure(cause::kWorkerLost,
                              fmt::format("did not come back after the coordinator's restart: {}",
                                          MissingWorkers(job))),
                  false, false},
                 turn);
      return;
    case GroupPhase::kStarting:
    case GroupPhase::kBooked:
      BreakGroup(job, {LateStart(job), false, false}, turn);
      return;
    case GroupPhase::kDraining:
      FinalizeBreakdown(job, {FinalFailure(job, turn.options.bugs), true, false}, turn);
      return;
    case GroupPhase::kRunning:
      return;
  }
}

std::optional<MonotonicTime> NextJobDeadline(const Job& job, const CoordinatorOptions& options) {
  std::optional<MonotonicTime> next;
  const auto at = [&next](MonotonicTime time) {
    if (!next || time < *next) next = time;
  };
  if (!job.unflushed.empty()) at(job.flush_time);
  if (job.place_not_before) at(*job.place_not_before);
  if (job.choose_time) at(*job.choose_time);
  if (job.delete_again_time) at(*job.delete_again_time);
  if (job.shrink_time) at(*job.shrink_time);
  if (job.image_look_time) at(*job.image_look_time);
  if (const auto due = NextDoubtDeadline(job)) at(*due);
  if (!job.group) return next;
  if (job.group->phase != GroupPhase::kRunning) {
    at(job.group->deadline);
    return next;
  }
  if (job.grow_time) at(*job.grow_time);
  if (job.group->save_again_time) at(*job.group->save_again_time);
  if (const auto due = TimedCheckpointDue(job)) at(*due);
  if (job.group->image_taking) at(job.group->image_taking->deadline);
  const bool open = job.group->save_again_time || job.group->image_taking || HoldsUpRanks(job);
  for (const auto& [number, attempt] : job.attempts) {
    if (const auto deadline = AttemptDeadline(job, attempt, options.limits)) at(*deadline);
  }
  if (!open) at(job.group->last_progress + HangLimitOf(job, options.limits));
  at(TicketRenewalTime(*job.group, options.limits));
  return next;
}

}  // namespace troupe
