#include "coordinator/job/job_creation.h"

#include <string>
#include <utility>

#include "coordinator/job/deletion.h"
#include "coordinator/job/job_record.h"
#include "coordinator/job/kept_checkpoints.h"
#include "coordinator/state/event_kind.h"
#include "coordinator/state/path_roots.h"
#include "coordinator/state/quota.h"

namespace troupe {

void FillCheckpointFolder(const CoordinatorOptions& options, v1::JobSpec* spec) {
  if (spec->checkpoint().has_folder()) return;
  const v1::Namespace* const space = FindNamespaceOf(options.namespaces.get(), spec->name());
  const bool has_root = space != nullptr && !space->roots().checkpoints().empty();
  const std::string& folder = has_root ? space->roots().checkpoints() : options.checkpoint_folder;
  if (!folder.empty()) spec->mutable_checkpoint()->set_folder(folder);
}

std::string KnownFolderId(const CoordinatorOptions& options, const v1::JobSpec& spec) {
  const bool is_known = spec.checkpoint().folder() == options.checkpoint_folder;
  return is_known ? options.checkpoint_folder_id : "";
}

Status CheckConfined(const CoordinatorOptions& options, const v1::JobSpec& spec,
                     const v1::Plan& plan) {
  const v1::Namespace* const space = FindNamespaceOf(options.namespaces.get(), spec.name());
  if (space == nullptr) return OkStatus();
  TROUPE_RETURN_IF_ERROR(CheckPaths(spec, *space));
  return CheckFits(*space, spec, plan.ranks_size());
}

Job CreateJob(v1::JobSpec spec, v1::Plan plan, uint64_t sequence, const std::string& creator,
              Turn& turn) {
  Job job;
  job.record.set_id(spec.name());
  job.record.set_state(v1::JOB_STATE_QUEUED);
  job.record.set_sequence(sequence);
  job.record.set_create_wall_time_ns(turn.wall_ns);
  job.record.set_creator(creator);
  job.record.set_folder_id(KnownFolderId(turn.options, spec));
  job.spec = std::move(spec);
  job.plan = std::move(plan);
  turn.effects.writes.PutSpec(job.id(), job.spec);
  turn.effects.writes.PutPlan(job.id(), job.plan);
  RecordEvent(job, event::kQueued, "", turn);
  turn.reschedule = true;
  return job;
}

Job RecoverJob(const v1::JobRecord& record, const v1::JobSpec& spec, const v1::Plan& plan,
               const v1::GroupRecord& group,
               const std::map<int64_t, v1::CheckpointRecord>& checkpoints, const TimeLimits& limits,
               MonotonicTime now) {
  Job job;
  job.record = record;
  job.spec = spec;
  job.plan = plan;
  job.last_group = group;
  job.durable_step = record.step();
  if (record.median_step_seconds() > 0) job.step_seconds.push_back(record.median_step_seconds());
  const bool running = record.state() == v1::JOB_STATE_RUNNING;
  // A waiting job may have been resumed on a layout other than that of its last group.
  if (running && group.ranks_size() > 0) *job.plan.mutable_ranks() = group.ranks();
  if (running) {
    Group& adopted = job.group.emplace();
    adopted.epoch = record.group_epoch();
    adopted.phase = GroupPhase::kAdopting;
    adopted.deadline = now + limits.reconnect_grace;
    // A job with known step times has warmed up.
    adopted.first_report = job.step_seconds.empty();
    adopted.ranks.resize(static_cast<size_t>(group.ranks_size()));
    // Each worker resends its ranks' later steps when it reconnects, while other workers are still
    // awaited.
    for (RankState& rank : adopted.ranks) {
      rank.reported_step = record.step();
      rank.writing_attempt.reset();
    }
    for (int rank = 0; rank < group.pids_size() && rank < group.ranks_size(); ++rank) {
      adopted.ranks[static_cast<size_t>(rank)].pid = group.pids(rank);
    }
  } else if (record.state() == v1::JOB_STATE_STARTING) {
    // It is unknown which ranks received StartRanks: they are stopped at their workers' Hello, and
    // the job starts again.
    job.record.set_state(record.recovering() || record.barren_restarts() > 0
                             ? v1::JOB_STATE_RECOVERING
                             : v1::JOB_STATE_QUEUED);
  }
  for (const auto& [number, checkpoint] : checkpoints) {
    if (checkpoint.state() != v1::CHECKPOINT_STATE_WRITING) {
      job.checkpoints[number] = checkpoint;
      const bool doubted =
          checkpoint.state() == v1::CHECKPOINT_STATE_COMMITTED && !checkpoint.doubted_by().empty();
      // The workers asked before the restart are not recorded: one is asked again once the workers
      // are back.
      if (doubted) job.doubt_readings[number].look = now + limits.reconnect_grace;
    } else if (running && checkpoint.group_epoch() == record.group_epoch()) {
      Attempt& attempt = job.attempts[number];
      attempt.record = checkpoint;
      attempt.asked = checkpoint.step() == 0;
      attempt.inherited = true;
      attempt.asked_time = now;
    } else {
      v1::CheckpointRecord& aborted = job.checkpoints[number] = checkpoint;
      aborted.set_state(v1::CHECKPOINT_STATE_ABORTED);
      aborted.set_reason("the coordinator restarted after the ranks had stopped");
    }
  }
  if (record.deleting()) job.delete_again_time = now + kDeleteAgainInterval;
  if (job.record.state() == v1::JOB_STATE_RECOVERING &&
      spec.fault_tolerance().allow_layout_change()) {
    job.shrink_time = now + limits.layout_patience;
  }
  return job;
}

}  // namespace troupe
