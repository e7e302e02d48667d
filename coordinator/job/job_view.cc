#include "coordinator/job/job_view.h"

#include <algorithm>
#include <utility>

#include "coordinator/job/running_layout.h"
#include "plan/job/job_name.h"

namespace troupe {
namespace {

// Returns what the job waits for: capacity, or the storage of its last checkpoint.
std::string WaitingFor(const Job& job) {
  const bool saves_again = job.group && job.group->save_again_time &&
                           !job.group->save_failure.empty() && job.waiting_for.empty();
  return saves_again ? "another try of its last checkpoint: " + job.group->save_failure
                     : job.waiting_for;
}

}  // namespace

v1::Job DescribeJob(const Job& job, bool full) {
  v1::Job shown;
  shown.set_name(JobName(job.id()));
  shown.set_state(ShownState(job));
  shown.set_step(job.record.step());
  shown.set_steps(job.steps());
  // After a recovery the last step is an earlier one.
  if (job.last_loss && job.last_loss->step == job.record.step())
    shown.set_loss(job.last_loss->loss);
  *shown.mutable_layout() = job.plan.mesh();
  for (int rank = 0; rank < job.last_group.ranks_size(); ++rank) {
    const v1::RankPlacement& placement = job.last_group.ranks(rank);
    v1::RankStatus* const status = shown.add_ranks();
    status->set_rank(placement.rank());
    status->set_worker(placement.worker());
    status->set_device(placement.device());
    if (job.group) {
      const RankState& state = job.group->ranks[static_cast<size_t>(rank)];
      status->set_pid(state.pid);
      *status->mutable_cores() = state.cores;
    } else if (rank < job.last_group.pids_size()) {
      status->set_pid(job.last_group.pids(rank));
    }
    *status->mutable_coordinates() = placement.coordinates();
  }
  shown.set_group_epoch(job.record.group_epoch());
  shown.set_restarts(job.record.restarts());
  shown.set_moves(job.record.moves());
  if (IsMoving(job)) shown.set_moving(job.record.move_reason());
  for (v1::CheckpointRecord& record : ListedCheckpoints(job))
    *shown.add_checkpoints() = std::move(record);
  if (job.record.has_failure()) *shown.mutable_failure() = job.record.failure();
  if (job.record.has_last_failure()) *shown.mutable_last_failure() = job.record.last_failure();
  shown.set_waiting_for(WaitingFor(job));
  shown.set_create_wall_time_ns(job.record.create_wall_time_ns());
  shown.set_creator(job.record.creator());
  *shown.mutable_submitted_layout() = SubmittedPlan(job).mesh();
  if (full) {
    *shown.mutable_spec() = job.spec;
    *shown.mutable_plan() = job.plan;
  }
  return shown;
}

std::vector<v1::CheckpointRecord> ListedCheckpoints(const Job& job) {
  std::vector<v1::CheckpointRecord> listed;
  for (const auto& [attempt, record] : job.checkpoints) {
    if (record.state() == v1::CHECKPOINT_STATE_COMMITTED ||
        record.state() == v1::CHECKPOINT_STATE_QUARANTINED) {
      listed.push_back(record);
    }
  }
  std::stable_sort(listed.begin(), listed.end(),
                   [](const auto& a, const auto& b) { return a.step() < b.step(); });
  return listed;
}

}  // namespace troupe
