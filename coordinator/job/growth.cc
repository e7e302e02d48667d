#include "coordinator/job/growth.h"

#include "base/text/count_text.h"
#include "coordinator/job/attempts.h"
#include "coordinator/job/job_record.h"
#include "coordinator/job/running_layout.h"
#include "coordinator/state/event_kind.h"
#include "coordinator/state/job_state.h"
#include "coordinator/state/preference.h"
#include "coordinator/state/stop.h"
#include "plan/layout/placement.h"

namespace troupe {
namespace {

// Returns whether the job trains on a smaller layout, may change it, and can save the step at which
// it stops: no write has failed since its newest commit, and it does not continue from images.
bool MayGrow(const Job& job) {
  return job.smaller && job.group && job.group->phase == GroupPhase::kRunning &&
         job.spec.fault_tolerance().allow_layout_change() && job.has_folder() &&
         !job.failed_writes.any() && job.images.step() == 0 && StopAttempt(job.record) == 0 &&
         job.record.step() < job.steps();
}

bool SubmittedLayoutFits(const Job& job, const Turn& turn) {
  const v1::Plan& plan = SubmittedPlan(job);
  // A host that is set aside does not count.
  const ClusterView view = WithoutSetAside(ListDevicesFor(turn.fleet, job.id()), turn.fleet);
  return static_cast<int>(view.free_devices.size()) >= plan.ranks_size() &&
         turn.options.planner.place(job.spec, plan, view).ok();
}

}  // namespace

void ConsiderGrowth(Job& job, bool outranked, int64_t devices_left, Turn& turn) {
  if (turn.options.bugs.never_grow || outranked || !MayGrow(job) ||
      SubmittedPlan(job).ranks_size() > devices_left || !SubmittedLayoutFits(job, turn)) {
    job.grow_time.reset();
  } else if (!job.grow_time) {
    job.grow_time = turn.now + turn.limits().growth_patience;
  }
}

void BeginGrowth(Job& job, Turn& turn) {
  job.grow_time.reset();
  // Workers may have been lost in this turn.
  if (!MayGrow(job) || !SubmittedLayoutFits(job, turn)) return;
  StopAfterNextAttempt(StopPurpose::kGrow, &job.record);
  RecordEvent(job, event::kGrowing,
              fmt::format("devices for {} ranks have been available for {:.0f} s, so its {}",
                          SubmittedPlan(job).ranks_size(), ToSeconds(turn.limits().growth_patience),
                          CountText(job.plan.ranks_size(), "rank commits a checkpoint and stops",
                                    "ranks commit a checkpoint and stop")),
              turn);
  RequestCheckpoint(job, turn);
}

}  // namespace troupe
