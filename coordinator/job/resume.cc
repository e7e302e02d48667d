#include "coordinator/job/resume.h"

#include <string>
#include <utility>

#include "base/text/count_text.h"
#include "coordinator/faults/restart_budget.h"
#include "coordinator/job/images.h"
#include "coordinator/job/job_creation.h"
#include "coordinator/job/job_record.h"
#include "coordinator/job/running_layout.h"
#include "coordinator/state/event_kind.h"
#include "coordinator/state/job_state.h"
#include "plan/job/kept_keys.h"
#include "plan/job/key_effects.h"
#include "plan/job/key_path.h"
#include "plan/job/stated_keys.h"
#include "plan/job/violation.h"
#include "plan/layout/bucket_origin.h"

namespace troupe {
namespace {

bool Reschedules(const ResumeInputs& inputs) {
  const auto& asked = inputs.overrides.parallelism();
  return asked.has_pipeline_parallel_schedule() &&
         asked.pipeline_parallel_schedule() !=
             inputs.spec.parallelism().pipeline_parallel_schedule();
}

// Clears the keys of a job of which it is not known which were stated: those that the overrides
// make obsolete.
void ClearObsoleteKeys(const ResumeInputs& inputs, v1::JobSpec* spec) {
  if (Reschedules(inputs)) spec->mutable_parallelism()->clear_pipeline_parallel_chunks();
  // A decay over all of the former steps was probably not stated.
  if (inputs.overrides.training().has_steps() &&
      spec->lr_schedule().decay_steps() == inputs.spec.training().steps()) {
    spec->mutable_lr_schedule()->clear_decay_steps();
  }
  // A number of steps between checkpoints that the overrides state replaces the former
  // interval_seconds.
  if (inputs.overrides.checkpoint().interval() > 0)
    spec->mutable_checkpoint()->clear_interval_seconds();
}

// Merging would append a list to the former one.
void ClearReplacedLists(const v1::JobSpec& overrides, v1::JobSpec* spec) {
  for (const char* const path : {"model.trainable", "data.blend", "optimizer.no_weight_decay",
                                 "xla.option_groups", "xla.options"}) {
    if (HasKey(overrides, path)) ClearKey(path, spec);
  }
}

// The job's spec merged with the overrides, completed.
StatusOr<v1::JobSpec> MergedSpec(const Planner& planner, const ResumeInputs& inputs) {
  v1::JobSpec merged = inputs.spec;
  // Split points for the former number of chunks have no meaning for another number.
  const auto& asked = inputs.overrides.parallelism();
  if (Reschedules(inputs) || asked.pipeline_parallel_split_points_size() > 0 ||
      asked.has_pipeline_parallel_degree() || asked.has_pipeline_parallel_chunks())
    merged.mutable_parallelism()->clear_pipeline_parallel_split_points();
  ClearReplacedLists(inputs.overrides, &merged);
  if (inputs.stated) {
    ClearDerivedDefaults(*inputs.stated, &merged);
  } else {
    ClearObsoleteKeys(inputs, &merged);
  }
  merged.MergeFrom(inputs.overrides);
  if (inputs.overrides.optimizer().has_name()) {
    // Another optimizer would not be refused by its name, but by the keys of the former one.
    v1::JobSpec renamed = inputs.spec;
    renamed.mutable_optimizer()->set_name(merged.optimizer().name());
    TROUPE_RETURN_IF_ERROR(CheckKeptKeys(inputs.spec, renamed));
  }
  TROUPE_ASSIGN_OR_RETURN(v1::JobSpec spec, planner.complete(merged));
  // The overrides may have taken the effect of other keys away.
  if (inputs.stated) {
    v1::StatedKeys stated = *inputs.stated;
    AddStatedKeys(inputs.overrides, &stated);
    DropDefaults(stated, &spec);
  } else {
    DropDefaults(inputs.overrides, &spec);
  }
  TROUPE_RETURN_IF_ERROR(CheckKeptKeys(inputs.spec, spec));
  return spec;
}

// The same layout continues with the same kernels, bit for bit. Another layout is another
// computation, and its devices and threads are chosen again.
StatusOr<v1::Plan> PlanOf(const v1::JobSpec& spec, const Planner& planner,
                          const ResumeInputs& inputs) {
  TROUPE_ASSIGN_OR_RETURN(v1::Plan plan,
                          planner.make_plan(spec, &inputs.submitted.device_profile()));
  const v1::BucketSpec& asked = inputs.overrides.parallelism().bucket();
  const bool states_anew = asked.has_elements() || asked.has_alignment() || asked.has_padding();
  if (!states_anew) InheritBucketNumbers(spec, inputs.submitted, &plan);
  for (const v1::Plan* const former : {&inputs.submitted, &inputs.running}) {
    const bool same_layout =
        plan.mesh().SerializeAsString() == former->mesh().SerializeAsString() &&
        spec.devices() == inputs.spec.devices();
    if (!same_layout || !former->has_device()) continue;
    *plan.mutable_device() = former->device();
    plan.set_threads_per_rank(former->threads_per_rank());
    break;
  }
  return plan;
}

// Whether the state that the job is restored from allows the request. `reached`: its step.
Status CheckGoesOn(const Job& job, const v1::JobSpec& overrides, const v1::JobSpec& spec,
                   int64_t reached, const Turn& turn) {
  const v1::CheckpointRecord* const commit = NewestCommit(job);
  if (commit == nullptr && HasQuarantined(job) && !ContinuesFromImages(job)) {
    return FailedPrecondition(
        "job {} has no checkpoint to resume from: all of them are quarantined", job.id());
  }
  TROUPE_RETURN_IF_ERROR(CheckImages(job, spec, turn));
  // A job that did not succeed may still have to save the state after its last step.
  const int64_t least = job.record.state() == v1::JOB_STATE_SUCCEEDED || !ContinuesFromImages(job)
                            ? reached + 1
                            : reached;
  if (reached > 0 && spec.training().steps() < least) {
    // If the caller states no number of steps, the job's state is the obstacle, not the request.
    Violations violations;
    violations.AddNotAbove(
        "training.steps", spec.training().steps(),
        fmt::format("the {} steps that job {} has completed", reached, job.id()));
    return violations.ToStatus(overrides.training().has_steps() ? StatusCode::kInvalidArgument
                                                                : StatusCode::kFailedPrecondition);
  }
  if (commit != nullptr && overrides.checkpoint().has_initial_load() &&
      overrides.checkpoint().initial_load() != job.spec.checkpoint().initial_load()) {
    return RefuseField(StatusCode::kInvalidArgument, "checkpoint.initial_load",
                       "is {}, but job {} continues from its own commit of step {}",
                       overrides.checkpoint().initial_load(), job.id(), reached);
  }
  if (job.data.has_value() && job.data->has_base() && overrides.checkpoint().has_initial_load() &&
      overrides.checkpoint().initial_load() != job.spec.checkpoint().initial_load()) {
    return RefuseField(StatusCode::kInvalidArgument, "checkpoint.initial_load",
                       "is {}, but job {} keeps its frozen parameters, which are those of {}",
                       overrides.checkpoint().initial_load(), job.id(), job.data->base().path());
  }
  return OkStatus();
}

}  // namespace

Status CheckResumable(const Job& job, const v1::JobSpec& overrides) {
  if (!HasEnded(job)) {
    return FailedPrecondition(
        "job {} cannot be resumed: it is {}, not CANCELLED, FAILED or SUCCEEDED", job.id(),
        StateName(ShownState(job)));
  }
  if (job.record.deleting()) return FailedPrecondition("job {} is being deleted", job.id());
  if (overrides.has_name() && overrides.name() != job.id()) {
    return RefuseField(StatusCode::kInvalidArgument, "name",
                       "is {}, but a resumed job keeps its name, {}", overrides.name(), job.id());
  }
  return OkStatus();
}

ResumeInputs InputsOfResume(const Job& job, const v1::ResumeJobRequest& request) {
  ResumeInputs inputs;
  inputs.last_event = job.record.last_event();
  inputs.spec = job.spec;
  inputs.overrides = request.overrides();
  if (job.record.has_stated_keys()) inputs.stated = job.record.stated_keys();
  inputs.submitted = SubmittedPlan(job);
  inputs.running = job.plan;
  if (job.smaller && ContinuesFromImages(job) && !request.discard_images())
    inputs.images_layout = job.smaller->parallelism();
  return inputs;
}

PreparedResume PrepareResume(const Planner& planner, const ResumeInputs& inputs) {
  PreparedResume prepared;
  prepared.last_event = inputs.last_event;
  prepared.spec = MergedSpec(planner, inputs);
  if (!prepared.spec.ok()) {
    prepared.plan = prepared.spec.status();
    return prepared;
  }
  const v1::JobSpec& spec = *prepared.spec;
  prepared.plan = PlanOf(spec, planner, inputs);
  const bool keeps_layout =
      inputs.images_layout && spec.devices() == inputs.spec.devices() &&
      spec.parallelism().SerializeAsString() == inputs.spec.parallelism().SerializeAsString();
  if (!keeps_layout || !prepared.plan.ok()) return prepared;
  v1::SmallerLayout& smaller = prepared.smaller.emplace();
  *smaller.mutable_parallelism() = *inputs.images_layout;
  *smaller.mutable_submitted_plan() = *std::move(prepared.plan);
  v1::JobSpec running = spec;
  *running.mutable_parallelism() = *inputs.images_layout;
  prepared.plan = PlanOf(running, planner, inputs);
  return prepared;
}

Status ResumeJob(Job& job, const v1::ResumeJobRequest& request,
                 std::shared_ptr<const PreparedResume> prepared, Turn& turn) {
  TROUPE_RETURN_IF_ERROR(CheckResumable(job, request.overrides()));
  if (prepared == nullptr || prepared->last_event != job.record.last_event()) {
    prepared = std::make_shared<const PreparedResume>(
        PrepareResume(turn.options.planner, InputsOfResume(job, request)));
  }
  TROUPE_ASSIGN_OR_RETURN(v1::JobSpec spec, prepared->spec);
  const v1::CheckpointRecord* const commit = NewestCommit(job);
  const int64_t reached = ContinuesFromImages(job) ? job.images.step()
                          : commit != nullptr      ? commit->step()
                                                   : 0;
  TROUPE_RETURN_IF_ERROR(CheckGoesOn(job, request.overrides(), spec, reached, turn));
  TROUPE_ASSIGN_OR_RETURN(v1::Plan plan, prepared->plan);
  TROUPE_RETURN_IF_ERROR(CheckConfined(turn.options, spec, plan));
  const std::string layout =
      plan.ranks_size() == job.plan.ranks_size()
          ? ""
          : fmt::format(" on {} instead of {}", CountText(plan.ranks_size(), "rank"),
                        job.plan.ranks_size());
  if (spec.checkpoint().folder() != job.spec.checkpoint().folder())
    job.record.set_folder_id(KnownFolderId(turn.options, spec));
  job.record.clear_unsaved_since_wall_time_ns();
  if (job.record.has_stated_keys())
    AddStatedKeys(request.overrides(), job.record.mutable_stated_keys());
  if (prepared->smaller) {
    RecordSmallerLayout(*prepared->smaller, job, turn);
  } else {
    ForgetSmallerLayout(job, turn);
  }
  job.spec = std::move(spec);
  job.plan = std::move(plan);
  job.record.set_state(v1::JOB_STATE_QUEUED);
  job.record.clear_failure();
  RenewBudget(&job.record);
  job.delayed_recoveries = 0;
  job.failed_writes = {};
  job.record.set_hung_final_saves(0);
  // With other settings the job may have another pace.
  job.step_seconds.clear();
  job.record.clear_median_step_seconds();
  turn.effects.writes.PutSpec(job.id(), job.spec);
  turn.effects.writes.PutPlan(job.id(), job.plan);
  RecordEvent(job, event::kQueued,
              fmt::format("resumed from step {}{}{}", reached, layout,
                          ContinuesFromImages(job) ? ", on the workers that have its images" : ""),
              turn);
  turn.reschedule = true;
  return OkStatus();
}

}  // namespace troupe
