#include "coordinator/resume.h"

#include <string>
#include <utility>

#include "coordinator/images.h"
#include "coordinator/restart_budget.h"
#include "coordinator/running_layout.h"
#include "plan/kept_keys.h"
#include "plan/key_effects.h"
#include "plan/violation.h"

namespace troupe {

Status ResumeJob(Job& job, const v1::JobSpec& overrides, Turn& turn) {
  if (!HasEnded(job)) {
    return FailedPrecondition(
        "job {} cannot be resumed: it is {}, not CANCELLED, FAILED or SUCCEEDED", job.id(),
        StateName(ShownState(job)));
  }
  if (job.record.deleting()) return FailedPrecondition("job {} is being deleted", job.id());
  if (overrides.has_name() && overrides.name() != job.id()) {
    return RefuseField(StatusCode::kInvalidArgument, "name", "is {}: resume cannot rename {}",
                       overrides.name(), job.id());
  }
  const Planner& planner = turn.options.planner;
  v1::JobSpec merged = job.spec;
  // Points that cut the model into the former number of chunks mean nothing for another number.
  const auto& asked = overrides.parallelism();
  const bool reschedules =
      asked.has_pipeline_parallel_schedule() &&
      asked.pipeline_parallel_schedule() != merged.parallelism().pipeline_parallel_schedule();
  if (reschedules) merged.mutable_parallelism()->clear_pipeline_parallel_chunks();
  if (reschedules || asked.pipeline_parallel_split_points_size() > 0 ||
      asked.has_pipeline_parallel_degree() || asked.has_pipeline_parallel_chunks())
    merged.mutable_parallelism()->clear_pipeline_parallel_split_points();
  if (overrides.data().blend_size() > 0) merged.mutable_data()->clear_blend();
  // A decay over all of the former steps was not asked for as a number: it goes with the steps.
  if (overrides.training().has_steps() &&
      merged.lr_schedule().decay_steps() == job.spec.training().steps()) {
    merged.mutable_lr_schedule()->clear_decay_steps();
  }
  // A time between checkpoints that nobody stated yields to a number of steps that is stated now.
  if (overrides.checkpoint().interval() > 0) merged.mutable_checkpoint()->clear_interval_seconds();
  merged.MergeFrom(overrides);
  TROUPE_ASSIGN_OR_RETURN(v1::JobSpec spec, planner.complete(merged));
  DropDefaults(overrides, &spec);  // those that have lost their effect
  TROUPE_RETURN_IF_ERROR(CheckKeptKeys(job.spec, spec));
  const v1::CheckpointRecord* const commit = NewestCommit(job);
  if (commit == nullptr && HasQuarantined(job) && !GoesOnFromImages(job)) {
    return FailedPrecondition(
        "job {} has no checkpoint left to resume from: every one is quarantined", job.id());
  }
  TROUPE_RETURN_IF_ERROR(CheckImages(job, spec, turn));
  const int64_t reached = GoesOnFromImages(job) ? job.images.step()
                          : commit != nullptr   ? commit->step()
                                                : 0;
  if (job.record.state() == v1::JOB_STATE_SUCCEEDED && spec.training().steps() <= reached) {
    // Without a number of the caller's it is the job's state that is in the way, not the request.
    return RefuseField(overrides.training().has_steps() ? StatusCode::kInvalidArgument
                                                        : StatusCode::kFailedPrecondition,
                       "training.steps",
                       "is {}, which is not more than the {} steps that job {} has done",
                       spec.training().steps(), reached, job.id());
  }
  if (commit != nullptr && overrides.checkpoint().has_initial_load() &&
      overrides.checkpoint().initial_load() != job.spec.checkpoint().initial_load()) {
    return RefuseField(StatusCode::kInvalidArgument, "checkpoint.initial_load",
                       "is {}, and job {} goes on from its own commit of step {}",
                       overrides.checkpoint().initial_load(), job.id(), reached);
  }
  const v1::Plan& former = SubmittedPlan(job);
  TROUPE_ASSIGN_OR_RETURN(v1::Plan plan, planner.make_plan(spec, &former.device_profile()));
  // The same layout goes on with the same kernels, bit for bit. Another one is another computation,
  // whose devices and threads are chosen anew.
  const bool same_layout = plan.mesh().SerializeAsString() == former.mesh().SerializeAsString() &&
                           spec.devices() == job.spec.devices();
  if (same_layout && former.has_device()) {
    *plan.mutable_device() = former.device();
    plan.set_threads_per_rank(former.threads_per_rank());
  }
  const std::string layout =
      plan.ranks_size() == job.plan.ranks_size()
          ? ""
          : fmt::format(" on {} ranks, which were {}", plan.ranks_size(), job.plan.ranks_size());
  if (spec.checkpoint().folder() != job.spec.checkpoint().folder()) job.record.clear_folder_id();
  job.record.clear_unsaved_since_wall_time_ns();
  ForgetSmallerLayout(job, turn);
  job.spec = std::move(spec);
  job.plan = std::move(plan);
  job.record.set_state(v1::JOB_STATE_QUEUED);
  job.record.clear_failure();
  RenewBudget(&job.record);
  job.delayed_recoveries = 0;
  job.failed_writes = {};
  // With other numbers it may have another pace.
  job.step_seconds.clear();
  job.record.clear_median_step_seconds();
  turn.effects.writes.PutSpec(job.id(), job.spec);
  turn.effects.writes.PutPlan(job.id(), job.plan);
  RecordEvent(job, "QUEUED", fmt::format("resumed from step {}{}", reached, layout), turn);
  turn.reschedule = true;
  return OkStatus();
}

}  // namespace troupe
