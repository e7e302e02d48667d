#include "plan/validate/stage_inputs.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>

#include "model/program/builder.h"

namespace troupe {
namespace {

// Minimum of rows of a chunk of the head.
int64_t HeadRows(const DecodedJob& job, int64_t tensor_ranks) {
  constexpr int64_t kLeast = 1024;
  const uint64_t logits_bytes = job.devices->head_logits_bytes;
  if (logits_bytes == 0) return kLeast;
  const int64_t vocabulary =
      std::max<int64_t>(1, (job.model.vocab_size + tensor_ranks - 1) / tensor_ranks);
  const auto row_bytes =
      static_cast<uint64_t>(vocabulary * model::SizeOf(job.choices.compute_dtype));
  return std::max(kLeast, static_cast<int64_t>(std::bit_floor(logits_bytes / row_bytes)));
}

}  // namespace

StatusOr<model::BuildOptions> MakeStageBuildOptions(const DecodedJob& job, const v1::Plan& plan,
                                                    int rank) {
  const Mesh mesh(plan.mesh());
  if (rank < 0 || rank >= mesh.ranks()) {
    return InvalidArgument("rank {} is not below {}", rank, mesh.ranks());
  }
  const v1::JobSpec& spec = job.spec;
  const JobChoices& choices = job.choices;
  model::BuildOptions options;
  options.model = job.model;
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
  options.micro_batch_size = job.batch.micro_batch_size;
  options.sequence_length = job.batch.sequence_length;
  options.sequence_parallel = job.splits_rows_over_tensor;
  if (mesh.degrees()[model::Axis::kTensor] > 1) {
    options.tensor_parts = std::max(1, plan.tensor_parallel_parts());
  }
  options.spread_experts_over_tensor = job.spreads_experts_over_tensor;
  options.gather_dispatch = choices.expert_dispatch == v1::EXPERT_DISPATCH_ALL_GATHER;
  options.ring_attention = choices.context_method == v1::CONTEXT_METHOD_RING;
  options.document_mask = spec.data().document_mask();
  options.compute_dtype = choices.compute_dtype;
  options.head_rows = HeadRows(job, mesh.degrees()[model::Axis::kTensor]);
  options.interleaves_pairs = plan.schedule().interleaves_pairs();
  options.halts = plan.control_lag_steps() > 0 && choices.on_nonfinite == v1::ON_NONFINITE_FAIL;
  options.float8 = choices.float8;
  options.z_loss_coef = spec.training().z_loss_coef();
  options.seed = spec.training().seed();
  if (choices.param_dtype) options.param_dtype = *choices.param_dtype;
  options.reduce_dtype = choices.reduce_dtype;
  options.buffer_dtype = choices.buffer_dtype;
  options.optimizer = job.optimizer;
  options.no_weight_decay = GlobsOf(spec.optimizer().no_weight_decay());
  options.trained = job.trained;
  options.recomputation.mode = choices.recomputation;
  if (spec.activation_recomputation().has_num_layers()) {
    options.recomputation.layers = spec.activation_recomputation().num_layers();
  }
  // A group of one has nothing to shard over.
  const int shards = model::GroupSize(options.mesh, model::ShardGroup());
  if (shards > 1) {
    options.zero_stage = job.stage_of_programs();
    options.shard_run = job.shard_run;
    options.whole_matrices = spec.parallelism().shard_whole_matrices();
  }
  // Without gradient reduction there are no buckets. A plan from before a number was recorded has 0
  // for it.
  if (job.bucket_effects.alignment) {
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
