#include "plan/stage_inputs.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>

#include "model/program/builder.h"
#include "plan/key_effects.h"
#include "plan/reshard.h"
#include "plan/schedules/schedule.h"

namespace troupe {
namespace {

model::Recomputation MakeRecomputation(const v1::ActivationRecomputationSpec& spec) {
  using Mode = model::Recomputation::Mode;
  model::Recomputation recomputation;
  recomputation.mode = spec.mode() == "full"        ? Mode::kFull
                       : spec.mode() == "selective" ? Mode::kSelective
                                                    : Mode::kNone;
  if (spec.has_num_layers()) recomputation.layers = spec.num_layers();
  return recomputation;
}

model::Float8Recipe MakeFloat8Recipe(const std::string& name) {
  using enum model::Float8Recipe;
  for (const model::Float8Recipe recipe : {kDelayed, kCurrent, kBlockwise}) {
    if (name == model::Name(recipe)) return recipe;
  }
  return kNone;
}

model::DType DTypeOf(const std::string& word) {
  return word == "bfloat16" ? model::DType::kBFloat16 : model::DType::kFloat32;
}

// Rows of a chunk of the head. Each chunk reads and writes the whole gradient of the table, which
// takes a GPU as much time as the matmul with one or two thousand rows. On a GPU a chunk is
// therefore a power of two of rows with logits of at most two GiB and at least half of that. On
// processors 1,024 rows suffice.
int64_t HeadRows(const v1::JobSpec& spec, int64_t tensor_ranks, model::DType compute_dtype) {
  constexpr uint64_t kLogitsBytes = uint64_t{2} << 30;
  constexpr int64_t kLeast = 1024;
  if (spec.devices() != "cuda") return kLeast;
  const int64_t vocabulary = std::max<int64_t>(1, (spec.model().vocab_size() + tensor_ranks - 1) / tensor_ranks);
  const auto row_bytes = static_cast<uint64_t>(vocabulary * model::SizeOf(compute_dtype));
  return std::max(kLeast, static_cast<int64_t>(std::bit_floor(kLogitsBytes / row_bytes)));
}

}  // namespace

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
  config.hidden_dropout = spec.hidden_dropout();
  config.experts = {.num_experts = spec.num_experts(),
                    .num_experts_per_tok = spec.num_experts_per_tok(),
                    .moe_intermediate_size = spec.moe_intermediate_size(),
                    .num_shared_experts = spec.num_shared_experts(),
                    .score = spec.router_score() == "sigmoid" ? model::RouterScore::kSigmoid
                                                              : model::RouterScore::kSoftmax,
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
  options.micro_batch_size = training.micro_batch_size();
  options.sequence_length = training.sequence_length();
  options.sequence_parallel =
      spec.parallelism().sequence_parallel() && mesh.degrees()[model::Axis::kTensor] > 1;
  if (mesh.degrees()[model::Axis::kTensor] > 1) {
    options.tensor_parts = std::max(1, plan.tensor_parallel_parts());
  }
  options.spread_experts_over_tensor = SpreadsExpertsOverTensor(spec.parallelism());
  options.gather_dispatch = spec.parallelism().expert_dispatch() == "all_gather";
  options.ring_attention = spec.parallelism().context_parallel_method() != "all_to_all";
  options.document_mask = spec.data().document_mask();
  options.compute_dtype = DTypeOf(training.compute_dtype());
  options.head_rows = HeadRows(spec, mesh.degrees()[model::Axis::kTensor], options.compute_dtype);
  options.interleaves_pairs = plan.schedule().interleaves_pairs();
  options.halts = plan.control_lag_steps() > 0 && training.on_nonfinite() != "skip_step";
  options.float8 = MakeFloat8Recipe(training.float8().recipe());
  options.z_loss_coef = training.z_loss_coef();
  options.seed = training.seed();
  const v1::MixedPrecision& mixed = training.mixed_precision();
  if (mixed.has_param()) options.param_dtype = DTypeOf(mixed.param());
  options.reduce_dtype = DTypeOf(mixed.reduce());
  options.buffer_dtype = DTypeOf(mixed.buffer());
  options.optimizer = {.beta1 = spec.optimizer().beta1(),
                       .beta2 = spec.optimizer().beta2(),
                       .eps = spec.optimizer().eps(),
                       .weight_decay = spec.optimizer().weight_decay(),
                       .max_norm = training.max_norm()};
  options.no_weight_decay = {spec.optimizer().no_weight_decay().begin(),
                             spec.optimizer().no_weight_decay().end()};
  options.recomputation = MakeRecomputation(spec.activation_recomputation());
  // A group of one has nothing to shard over.
  const int shards = model::GroupSize(options.mesh, model::ShardGroup());
  if (shards > 1) {
    options.zero_stage = static_cast<int>(spec.parallelism().zero_stage());
    // Parameters that are kept once gathered are gathered once a step, as under ZeRO-2.
    if (spec.parallelism().reshard_after_forward() == "false")
      options.zero_stage = std::min(options.zero_stage, 2);
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
