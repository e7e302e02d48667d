#include "plan/validate/decoded_job.h"

#include <algorithm>
#include <utility>

#include "model/blocks/pattern.h"
#include "model/select_trained.h"
#include "plan/job/job_rules.h"
#include "plan/job/reshard_mode.h"
#include "plan/job/violation.h"
#include "plan/schedules/schedules.h"

namespace troupe {
namespace {

model::OptimizerConfig OptimizerConfigOf(const v1::JobSpec& spec, const JobChoices& choices) {
  const v1::OptimizerSpec& optimizer = spec.optimizer();
  return {.kind = choices.optimizer,
          .beta1 = optimizer.beta1(),
          .beta2 = optimizer.beta2(),
          .eps = optimizer.eps(),
          .momentum = optimizer.momentum(),
          .nesterov = optimizer.nesterov(),
          .weight_decay = optimizer.weight_decay(),
          .max_norm = spec.training().max_norm()};
}

}  // namespace

bool DecodedJob::SavesInBackground() const {
  return choices.saves_asynchronously && WillHaveCheckpointFolder(spec);
}

StatusOr<DecodedJob> DecodeJob(v1::JobSpec spec) {
  TROUPE_ASSIGN_OR_RETURN(model::ModelConfig model, MakeModelConfig(spec.model()));
  StatusOr<model::TrainedParameters> trained =
      model::SelectTrained(model, GlobsOf(spec.model().trainable()));
  if (!trained.ok()) return Annotate(trained.status(), "model.trainable");
  const v1::ParallelismSpec& parallelism = spec.parallelism();
  TROUPE_ASSIGN_OR_RETURN(const Mesh mesh, MakeMesh(parallelism));
  const JobChoices choices = ChoicesOf(spec);
  const std::optional<ReshardMode> reshard = ParseReshardMode(parallelism.reshard_after_forward());
  std::optional<int> chunks_per_stage;
  if (parallelism.has_pipeline_parallel_chunks())
    chunks_per_stage = static_cast<int>(parallelism.pipeline_parallel_chunks());
  DecodedJob job{
      .spec = {},
      .choices = choices,
      .model = std::move(model),
      .trained = *std::move(trained),
      .optimizer = OptimizerConfigOf(spec, choices),
      .mesh = mesh,
      .batch = MakeBatchGeometry(spec.training(), mesh),
      .devices = &DeviceTraitsOf(spec.devices()),
      .chunks_per_stage = chunks_per_stage,
      .chooses_schedule = parallelism.pipeline_parallel_schedule() == kAutoSchedule,
      .tensor_parts = static_cast<int>(std::max<int64_t>(1, parallelism.tensor_parallel_parts())),
      .recomputes_all = choices.recomputation == model::Recomputation::Mode::kFull &&
                        !spec.activation_recomputation().has_num_layers(),
      .zero_stage = static_cast<int>(parallelism.zero_stage()),
      .shard_run = reshard ? reshard->run : 0,
      .keeps_gathered = reshard == kReshardFalse,
      .splits_rows_over_tensor = SplitsRowsOverTensor(parallelism),
      .spreads_experts_over_tensor = SpreadsExpertsOverTensor(parallelism),
      .bucket_effects = BucketEffectsOf(spec)};
  job.spec = std::move(spec);
  return job;
}

StatusOr<model::ModelConfig> MakeModelConfig(const v1::ModelSpec& spec) {
  model::ModelConfig config;
  TROUPE_ASSIGN_OR_RETURN(config.blocks, model::ExpandPattern(spec.pattern()));
  config.hidden_size = spec.hidden_size();
  config.num_attention_heads = spec.num_attention_heads();
  config.num_key_value_heads = spec.num_key_value_heads();
  config.head_dim = spec.head_dim();
  config.intermediate_size = spec.intermediate_size();
  config.vocab_size = spec.vocab_size();
  config.tie_word_embeddings = spec.tie_word_embeddings();
  config.rope_theta = spec.rope_theta();
  if (spec.has_rope_scaling()) {
    config.rope_scaling = {
        .factor = spec.rope_scaling().factor(),
        .low_freq_factor = spec.rope_scaling().low_freq_factor(),
        .high_freq_factor = spec.rope_scaling().high_freq_factor(),
        .original_max_position_embeddings = spec.rope_scaling().original_max_position_embeddings()};
  }
  config.norm_eps = spec.norm_eps();
  if (spec.has_initializer_range()) config.initializer_range = spec.initializer_range();
  config.hidden_dropout = spec.hidden_dropout();
  config.experts = {.num_experts = spec.num_experts(),
                    .num_experts_per_tok = spec.num_experts_per_tok(),
                    .moe_intermediate_size = spec.moe_intermediate_size(),
                    .num_shared_experts = spec.num_shared_experts(),
                    .score = RouterScoreOf(spec),
                    .norm_topk_prob = spec.norm_topk_prob(),
                    .aux_loss_coef = spec.router_aux_loss_coef(),
                    .z_loss_coef = spec.router_z_loss_coef(),
                    .capacity_factor = spec.capacity_factor(),
                    .bias_update_rate = spec.router_bias_update_rate()};
  return config;
}

std::vector<std::string> GlobsOf(const google::protobuf::RepeatedPtrField<std::string>& globs) {
  return {globs.begin(), globs.end()};
}

BatchGeometry MakeBatchGeometry(const v1::TrainingSpec& training, const Mesh& mesh) {
  return {.global_batch_size = training.global_batch_size(),
          .micro_batch_size = training.micro_batch_size(),
          .sequence_length = training.sequence_length(),
          .data_ranks = mesh.data_ranks()};
}

}  // namespace troupe
