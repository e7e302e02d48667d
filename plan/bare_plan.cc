#include "plan/bare_plan.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "plan/cost/cut_model.h"
#include "plan/cost/overlapped_pairs.h"
#include "plan/cost/schedule_costs.h"
#include "plan/job/violation.h"
#include "plan/schedules/schedules.h"

namespace troupe {
namespace {

// The job's own schedule, or the one that `auto` chooses; the plan then gets the reasons.
StatusOr<Schedule> ScheduleOf(const DecodedJob& job, StageMemo* stages,
                              const std::vector<ScheduleOption>& schedules, v1::Plan* plan) {
  const int pipe = plan->mesh().pipe();
  const int microbatches = job.batch.microbatches();
  if (job.chooses_schedule) {
    TROUPE_ASSIGN_OR_RETURN(ScheduleChoice choice,
                            ChooseSchedule(
                                pipe, job.chunks_per_stage, microbatches,
                                [&](const Schedule& schedule) {
                                  return stages != nullptr
                                             ? SecondsOfSchedule(*plan, schedule, *stages)
                                             : FlopsOfSchedule(job, schedule);
                                },
                                schedules));
    for (std::string& line : choice.reasons) plan->add_schedule_choice(std::move(line));
    plan->add_schedule_choice(
        CostsLine(choice.costs, stages != nullptr ? &stages->profile() : nullptr));
    return MakeSchedule(choice.kind, choice.shape);
  }
  const std::string& name = job.spec.parallelism().pipeline_parallel_schedule();
  const auto named = FindSchedule(name);
  if (!named) {
    Violations violations;
    violations.AddUnknownWord("parallelism.pipeline_parallel_schedule", name, KnownSchedules());
    return violations.ToStatus();
  }
  const PipelineShape shape{pipe, job.chunks_per_stage.value_or(named->default_chunks_per_stage),
                            microbatches};
  TROUPE_RETURN_IF_ERROR(CheckShape(named->kind, shape));
  return MakeSchedule(named->kind, shape);
}

// The constants are those of Megatron's distributed optimizer.
v1::BucketPolicy MakeBucketPolicy(const v1::BucketSpec& spec, int data_ranks) {
  v1::BucketPolicy policy;
  policy.set_elements(std::max<int64_t>(40'000'000, int64_t{1'000'000} * data_ranks));
  if (spec.has_elements()) policy.set_elements(spec.elements());
  policy.set_alignment(spec.has_alignment() ? spec.alignment() : 64);
  policy.set_padding(spec.has_padding() ? spec.padding()
                                        : std::lcm<int64_t>(data_ranks, std::lcm(policy.alignment(),
                                                                                 int64_t{128})));
  return policy;
}

}  // namespace

StatusOr<BarePlan> MakeBarePlan(const DecodedJob& job, StageMemo* stages,
                                const std::vector<ScheduleOption>& schedules) {
  BarePlan bare;
  *bare.plan.mutable_mesh() = job.mesh.ToProto();
  if (stages != nullptr) *bare.plan.mutable_device_profile() = stages->profile();
  bare.plan.set_control_lag_steps(job.devices->control_lag_steps);
  *bare.plan.mutable_bucket() =
      MakeBucketPolicy(job.spec.parallelism().bucket(), job.mesh.data_ranks());
  bare.plan.set_tensor_parallel_parts(job.tensor_parts);
  TROUPE_ASSIGN_OR_RETURN(bare.schedule, ScheduleOf(job, stages, schedules, &bare.plan));
  bare.plan.mutable_schedule()->set_interleaves_pairs(
      InterleavesPairs(bare.schedule, bare.plan.mesh()));
  TROUPE_RETURN_IF_ERROR(AddChunks(job, bare.schedule, &bare.plan));
  return bare;
}

}  // namespace troupe
