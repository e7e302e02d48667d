#include "coordinator/growth.h"

#include "coordinator/attempts.h"
#include "coordinator/images.h"
#include "coordinator/preference.h"
#include "coordinator/progress.h"
#include "coordinator/running_layout.h"
#include "plan/placement.h"

namespace troupe {
namespace {

// Returns whether the job trains on a smaller layout, may change it, and can save the step at which
// it stops: no write has failed since its newest commit, and it does not continue from images.
bool MayGrow(const Job& job) {
  return job.smaller && job.group && job.group->phase == GroupPhase::kRunning &&
         job.spec.fault_tolerance().allow_layout_change() && job.has_folder() &&
         job.failed_writes.counts.empty() && job.images.step() == 0 &&
         job.record.stop_attempt() == 0 && job.record.step() < job.steps();
}

bool SubmittedLayoutFits(const Job& job, const Turn& turn) {
  const v1::Plan& plan = SubmittedPlan(job);
  // A host that is set aside does not count.
  const ClusterView view = WithoutSetAside(ListDevicesFor(turn.fleet, job.id()), turn.fleet);
  return static_cast<int>(view.free_devices.size()) >= plan.ranks_size() &&
         turn.options.planner.place(job.spec, plan, view).ok();
}

// Ends the group without a failure and queues the job.
void EndGroup(Job& job, const std::string& reason, Turn& turn) {
  FlushReports(job, turn);
  DropAttempts(job, "its group epoch ended: it " + reason, turn);
  v1::CoordinatorMessage stop;
  stop.mutable_stop_ranks()->set_job(job.id());
  stop.mutable_stop_ranks()->set_group_epoch(job.group->epoch);
  stop.mutable_stop_ranks()->set_reason(reason);
  SendToGroup(job, stop, turn);
  DropLeftImages(job, turn);
  job.group.reset();
  job.record.set_stop_attempt(0);
  job.record.set_recovering(true);
  job.record.set_state(v1::JOB_STATE_RECOVERING);
  turn.reschedule = true;
}

}  // namespace

void ConsiderGrowth(Job& job, bool outranked, Turn& turn) {
  if (turn.options.bugs.never_grow || outranked || !MayGrow(job) ||
      !SubmittedLayoutFits(job, turn)) {
    job.grow_time.reset();
  } else if (!job.grow_time) {
    job.grow_time = turn.now + turn.limits().growth_patience;
  }
}

void BeginGrowthIfDue(Job& job, Turn& turn) {
  if (!job.grow_time || turn.now < *job.grow_time) return;
  job.grow_time.reset();
  // Workers may have been lost in this turn.
  if (!MayGrow(job) || !SubmittedLayoutFits(job, turn)) return;
  job.record.set_stop_attempt(job.record.last_attempt() + 1);
  job.record.set_grows(true);
  RecordEvent(
      job, "GROWING",
      fmt::format("devices for {} ranks have been there for {:.0f} s: its {} ranks commit a "
                  "checkpoint and stop",
                  SubmittedPlan(job).ranks_size(), ToSeconds(turn.limits().growth_patience),
                  job.plan.ranks_size()),
      turn);
  RequestCheckpoint(job, turn);
}

void EndForGrowth(Job& job, int64_t step, Turn& turn) {
  const std::string reason =
      fmt::format("grows to {} ranks after step {}", SubmittedPlan(job).ranks_size(), step);
  EndGroup(job, reason, turn);
  // The devices may be gone again before the job is placed.
  job.shrink_time = turn.now + turn.limits().layout_patience;
  RecordEvent(job, "GROWING", reason, turn);
}

void GoOnFromImages(Job& job, Turn& turn) {
  const std::string reason = fmt::format(
      "does not grow, for step {} could not be saved: {}; it goes on from the images "
      "that its ranks keep on their workers",
      job.images.step(), job.group->save_failure);
  EndGroup(job, reason, turn);
  job.record.set_grows(false);
  RecordEvent(job, "GROWTH_CALLED_OFF", reason, turn);
}

}  // namespace troupe
