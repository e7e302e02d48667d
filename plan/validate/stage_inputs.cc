#include "plan/validate/stage_inputs.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>

#include "model/blocks/pattern.h"
#include "model/program/builder.h"
#include "model/select_trained.h"
#include "plan/device/device_traits.h"
#include "plan/job/job_choices.h"
#include "plan/job/key_effects.h"
#include "plan/schedules/schedule.h"
#include "plan/validate/reshard.h"

namespace troupe {
namespace {

// Minimum of rows of a chunk of the head.
int64_t HeadRows(const v1::JobSpec& spec, int64_t tensor_ranks, model::DType compute_dtype) {
  constexpr int64_t kLeast = 1024;
  const uint64_t logits_bytes = DeviceTraitsOf(spec.devices()).head_logits_bytes;
  if (logits_bytes == 0) return kLeast;
  const int64_t vocabulary =
      std::max<int64_t>(1, (spec.model().vocab_size() + tensor_ranks - 1) / tensor_ranks);
  const auto row_bytes = static_cast<uint64_t>(vocabulary * model::SizeOf(compute_dtype));
  return std::max(kLeast, static_cast<int64_t>(std::bit_floor(logits_bytes / row_bytes)));
}

}  // namespace

std::vector<std::string> GlobsOf(const google::protobuf::RepeatedPtrField<std::string>& globs) {
  return {globs.begin(), globs.end()};
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

bool SpreadsExpertsOverTensor(const v1::ParallelismSpec& parallelism) {
  return parallelism.tensor_parallel_degree() > 1 &&
         parallelism.has_expert_tensor_parallel_degree() &&
         parallelism.expert_tensor_parallel_degree() == 1;
}

BatchGeometry MakeBatchGeometry(const v1::TrainingSpec& training, const Mesh& mesh) {
  return {.global_batch_size = training.global_batch_size(),
          .micro_batch_size = training.micro_batch_size(),
          .sequence_length = training.sequence_length(),
          .data_ranks = mesh.data_ranks()};
}

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

StatusOr<model::BuildOptions> MakeStageBuildOptions(const v1::JobSpec& spec, const v1::Plan& plan,
                                                    int rank) {
  const Mesh mesh(plan.mesh());
  if (rank < 0 || rank >= mesh.ranks()) {
    return InvalidArgument("rank {} is not below {}", rank, mesh.ranks());
  }
  model::BuildOptions options;
  TROUPE_ASSIGN_OR_RETURN(options.model, MakeModelConfig(spec.model()));
  options.mesh.degrees = mesh.degrees();
  options.mesh.coordinates = mesh.CoordinatesOf(rank);
  for (const v1::ChunkPlan& chunk : plan.chunks()) {
    if (chunk.pipe_rank() != options.mesh.coordinates[model::Axis::kPipe]) continue;
    options.chunks.push_back({.chunk = chunk.chunk(),
                              .first_block = chunk.first_block(),
                              .block_count = chunk.block_count(),
                              .has_embedding = chunk.has_embedding(),
                              .has_head = chunk.has_head()});
  }
  const v1::TrainingSpec& training = spec.training();
  const JobChoices choices = ChoicesOf(spec);
  options.micro_batch_size = training.micro_batch_size();
  options.sequence_length = training.sequence_length();
  options.sequence_parallel =
      spec.parallelism().sequence_parallel() && mesh.degrees()[model::Axis::kTensor] > 1;
  if (mesh.degrees()[model::Axis::kTensor] > 1) {
    options.tensor_parts = std::max(1, plan.tensor_parallel_parts());
  }
  options.spread_experts_over_tensor = SpreadsExpertsOverTensor(spec.parallelism());
  options.gather_dispatch = choices.expert_dispatch == v1::EXPERT_DISPATCH_ALL_GATHER;
  options.ring_attention = choices.context_method == v1::CONTEXT_METHOD_RING;
  options.document_mask = spec.data().document_mask();
  options.compute_dtype = choices.compute_dtype;
  options.head_rows = HeadRows(spec, mesh.degrees()[model::Axis::kTensor], choices.compute_dtype);
  options.interleaves_pairs = plan.schedule().interleaves_pairs();
  options.halts = plan.control_lag_steps() > 0 && choices.on_nonfinite == v1::ON_NONFINITE_FAIL;
  options.float8 = choices.float8;
  options.z_loss_coef = training.z_loss_coef();
  options.seed = training.seed();
  if (choices.param_dtype) options.param_dtype = *choices.param_dtype;
  options.reduce_dtype = choices.reduce_dtype;
  options.buffer_dtype = choices.buffer_dtype;
  options.optimizer = OptimizerConfigOf(spec, choices);
  options.no_weight_decay = GlobsOf(spec.optimizer().no_weight_decay());
  TROUPE_ASSIGN_OR_RETURN(options.trained,
                          model::SelectTrained(options.model, GlobsOf(spec.model().trainable())));
  options.recomputation.mode = choices.recomputation;
  if (spec.activation_recomputation().has_num_layers()) {
    options.recomputation.layers = spec.activation_recomputation().num_layers();
  }
  // A group of one has nothing to shard over.
  const int shards = model::GroupSize(options.mesh, model::ShardGroup());
  if (shards > 1) {
    options.zero_stage = static_cast<int>(spec.parallelism().zero_stage());
    // Parameters that are kept once gathered are gathered once a step, as under ZeRO-2.
    if (KeepsGathered(spec.parallelism())) options.zero_stage = std::min(options.zero_stage, 2);
    options.shard_run = ShardRun(spec.parallelism());
    options.whole_matrices = spec.parallelism().shard_whole_matrices();
  }
  // Without gradient reduction there are no buckets. A plan from before a number was recorded has 0
  // for it.
  if (WhyWithoutEffect(spec, "parallelism.bucket.alignment").empty()) {
    if (plan.bucket().elements() > 0) options.bucket_elements = plan.bucket().elements();
    options.bucket_layout = {.alignment = std::max<int64_t>(1, plan.bucket().alignment()),
                             .padding = std::max<int64_t>(1, plan.bucket().padding())};
  }
  return options;
}

LiveMicrobatches CountLiveMicrobatches(const std::vector<Action>& actions_of_rank) {
  struct Count {
    int now = 0;
    int most = 0;
  };
  std::map<int, Count> counts;
  LiveMicrobatches live;
  for (const Action& action : actions_of_rank) {
    Count& chunk = counts[action.chunk];
    if (action.kind == ActionKind::kForward) chunk.most = std::max(chunk.most, ++chunk.now);
    // A microbatch is live until its weight gradients are computed.
    if (action.kind == ActionKind::kBackward || action.kind == ActionKind::kWeightGradient) {
      --chunk.now;
    }
    live.split_backward |= action.kind == ActionKind::kInputGradient;
  }
  for (const auto& [chunk, count] : counts) live.of_chunk.push_back(count.most);
  return live;
}

StatusOr<LiveMicrobatches> CountLiveMicrobatches(const v1::Plan& plan, int pipe_rank) {
  if (pipe_rank < 0 || pipe_rank >= plan.schedule().ranks_size()) {
    return InvalidArgument("the plan's schedule has {} pipe ranks, not one numbered {}",
                           plan.schedule().ranks_size(), pipe_rank);
  }
  std::vector<Action> actions;
  for (const std::string& text : plan.schedule().ranks(pipe_rank).actions()) {
    TROUPE_ASSIGN_OR_RETURN(const std::vector<Action> joined, ParseActions(text));
    actions.insert(actions.end(), joined.begin(), joined.end());
  }
  return CountLiveMicrobatches(actions);
}

}  // namespace troupe
