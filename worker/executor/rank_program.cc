#include "worker/executor/rank_program.h"

#include <algorithm>
#include <utility>

#include "base/sample_schema.h"
#include "checkpoint/format/sample_channels.h"
#include "model/build.h"
#include "plan/device/device_traits.h"
#include "plan/job/validate_keys.h"
#include "plan/layout/mesh.h"
#include "plan/validate/decoded_job.h"
#include "plan/validate/stage_inputs.h"

namespace troupe {
namespace {

using model::Axis;

LearningRateSchedule MakeLearningRateSchedule(const DecodedJob& job) {
  const v1::JobSpec& spec = job.spec;
  LearningRateSchedule schedule;
  schedule.peak = spec.optimizer().lr();
  schedule.warmup_steps = spec.lr_schedule().warmup_steps();
  schedule.decay_type = job.choices.decay_type;
  schedule.decay_steps = spec.lr_schedule().decay_steps();
  schedule.decay_ratio = spec.lr_schedule().decay_ratio();
  schedule.min_factor = spec.lr_schedule().min_lr_factor();
  return schedule;
}

// Checks a plan before its mesh is made, because plans come over the network.
Status CheckMesh(const v1::Plan& plan) {
  const v1::MeshDegrees& degrees = plan.mesh();
  int64_t product = 1;
  for (const int64_t degree : {degrees.pipe(), degrees.data_replicate(), degrees.data_shard(),
                               degrees.context(), degrees.expert(), degrees.tensor()}) {
    if (degree < 1) return InvalidArgument("plan.mesh has a degree of {}", degree);
    product *= degree;
    if (product > plan.ranks_size()) break;
  }
  if (product != plan.ranks_size()) {
    return InvalidArgument("plan.mesh does not have as many ranks as the plan, {}",
                           plan.ranks_size());
  }
  return OkStatus();
}

}  // namespace

StatusOr<RankProgram> MakeRankProgram(const v1::JobSpec& spec, const v1::Plan& plan, int rank) {
  Violations violations;
  ValidateKeys(spec, JobPurpose::kPlan, &violations);
  TROUPE_RETURN_IF_ERROR(violations.ToStatus());
  TROUPE_RETURN_IF_ERROR(CheckMesh(plan));
  TROUPE_RETURN_IF_ERROR(Annotate(ValidateSampleChannels(plan.samples()), "plan"));
  TROUPE_RETURN_IF_ERROR(
      Annotate(CheckSampleChannels(plan.samples(), CurrentSampleSchema()), "plan.samples"));
  TROUPE_ASSIGN_OR_RETURN(const DecodedJob job, DecodeJob(spec));
  TROUPE_ASSIGN_OR_RETURN(const model::BuildOptions build, MakeStageBuildOptions(job, plan, rank));
  if (plan.control_lag_steps() < 0 || plan.control_lag_steps() > kControlLagStepsMax) {
    return InvalidArgument("plan.control_lag_steps is {}, must be from 0 to {}",
                           plan.control_lag_steps(), kControlLagStepsMax);
  }
  const Mesh mesh(plan.mesh());
  const int pipe_rank = build.mesh.coordinates[Axis::kPipe];
  if (plan.schedule().ranks_size() <= pipe_rank) {
    return InvalidArgument("plan.schedule has {} pipe ranks, but rank {} is pipe rank {}",
                           plan.schedule().ranks_size(), rank, pipe_rank);
  }
  std::vector<int> pipe_rank_of_chunk;
  for (const v1::ChunkPlan& chunk : plan.chunks()) pipe_rank_of_chunk.push_back(chunk.pipe_rank());
  std::vector<int> chunks;
  for (const model::ChunkSpec& chunk : build.chunks) chunks.push_back(chunk.chunk);
  if (chunks.empty()) return InvalidArgument("the plan gives pipe rank {} no chunk", pipe_rank);
  const auto& schedule = plan.schedule().ranks(pipe_rank).actions();
  TROUPE_ASSIGN_OR_RETURN(
      ActionList actions,
      MakeActions({schedule.begin(), schedule.end()}, chunks,
                  static_cast<int>(pipe_rank_of_chunk.size()), plan.schedule().microbatches()));
  std::string letters;
  for (const v1::ChunkPlan& chunk : plan.chunks()) letters += chunk.blocks();
  const v1::TrainingSpec& training = spec.training();
  TROUPE_ASSIGN_OR_RETURN(model::Program program, model::BuildProgram(build));
  model::MemoryPlan memory = model::PlanMemory(program, actions.buffers, actions.split_backward,
                                               std::max(1, plan.threads_per_rank()));
  return RankProgram{
      .program = std::move(program),
      .memory = std::move(memory),
      .options = {.rank = rank,
                  .mesh = {mesh, pipe_rank_of_chunk.front(), pipe_rank_of_chunk.back()},
                  .pipe_rank_of_chunk = std::move(pipe_rank_of_chunk),
                  .actions = std::move(actions),
                  .batch = MakeBatchGeometry(training, mesh),
                  .steps = training.steps(),
                  .learning_rate = MakeLearningRateSchedule(job),
                  .on_nonfinite = job.choices.on_nonfinite,
                  .validation_interval = training.validation_interval(),
                  .validation_samples = training.validation_samples(),
                  .block_letters = std::move(letters),
                  .norms_interval = training.norms_interval(),
                  .control_lag_steps = plan.control_lag_steps()}};
}

}  // namespace troupe
