#include "coordinator/job/lifecycle.h"

#include <string>
#include <utility>

#include "coordinator/job/attempts.h"
#include "coordinator/job/images.h"
#include "coordinator/job/job_end.h"
#include "coordinator/job/job_messages.h"
#include "coordinator/job/job_record.h"
#include "coordinator/job/move.h"
#include "coordinator/job/recovery.h"
#include "coordinator/job/running_layout.h"
#include "coordinator/state/event_kind.h"
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

}  // namespace troupe
