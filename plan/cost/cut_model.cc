#include "plan/cost/cut_model.h"

#include <cstdint>
#include <vector>

#include "plan/cost/estimate.h"
#include "plan/cost/trained_work.h"

namespace troupe {

namespace {

// The embedding has no matmul: it moves rows of the table and of their gradient. The result is a
// third of the cost of forward and backward, because a third of a block's cost is in its forward.
double EmbeddingCost(const DecodedJob& job, double samples, double tokens) {
  const bool bfloat16 = job.computes_in_bfloat16();
  const double element = bfloat16 ? 2 : 4;
  const double elements = samples * tokens * static_cast<double>(job.model.hidden_size);
  // Forward reads and writes; backward reads, and accumulates in float32.
  const double bytes = elements * (2 * element + element + 2 * 4);
  return bytes / 3 *
         (bfloat16 ? job.devices->flops_per_byte_bfloat16 : job.devices->flops_per_byte_float32);
}

double ForwardFlops(const DecodedJob& job, const v1::ChunkPlan& chunk) {
  const model::ModelConfig& model = job.model;
  const double samples = static_cast<double>(job.batch.micro_batch_size);
  const double tokens = static_cast<double>(job.batch.sequence_length);
  double flops = chunk.has_head() ? HeadForwardFlops(model, samples, tokens) : 0;
  for (const char block : chunk.blocks()) flops += BlockForwardFlops(model, block, samples, tokens);
  return flops;
}

// A forward pass is a third of the cost of a block that is trained. A frozen one has no gradients
// of weights, and below the first one that is trained there are no gradients of inputs.
void LeaveOutFrozen(const model::TrainedParameters& trained, PartitionCosts* costs) {
  const auto share = [&](int block) {
    return (1.0 + (trained.TrainsBefore(block) ? 1 : 0) + (trained.Trains(block) ? 1 : 0)) / 3;
  };
  const int blocks = static_cast<int>(costs->blocks.size());
  for (int block = 0; block < blocks; ++block)
    costs->blocks[static_cast<size_t>(block)] *= share(block);
  costs->head *= share(blocks);
  if (!trained.Trains(-1)) costs->embedding /= 3;
}

}  // namespace

StatusOr<Partition> CutModel(const DecodedJob& job, int pieces) {
  const model::ModelConfig& model = job.model;
  const double samples = static_cast<double>(job.batch.micro_batch_size);
  const double tokens = static_cast<double>(job.batch.sequence_length);
  PartitionCosts costs;
  for (char block : model.blocks) {
    costs.blocks.push_back(BlockForwardFlops(model, block, samples, tokens));
  }
  costs.embedding = EmbeddingCost(job, samples, tokens);
  costs.head = HeadForwardFlops(model, samples, tokens);
  if (!job.trained.globs.empty()) LeaveOutFrozen(job.trained, &costs);
  const auto& split_points = job.spec.parallelism().pipeline_parallel_split_points();
  if (split_points.empty()) return PartitionByCost(costs, pieces);
  if (split_points.size() != pieces - 1) {
    return InvalidArgument("{} split points do not make {} chunks", split_points.size(), pieces);
  }
  return PartitionAt(costs, std::vector<int64_t>(split_points.begin(), split_points.end()));
}

Status AddChunks(const DecodedJob& job, const Schedule& schedule, v1::Plan* plan) {
  const model::ModelConfig& model = job.model;
  std::vector<int> pipe_rank_of_chunk;
  for (size_t rank = 0; rank < schedule.chunks.size(); ++rank) {
    for (const int chunk : schedule.chunks[rank]) {
      if (static_cast<size_t>(chunk) >= pipe_rank_of_chunk.size())
        pipe_rank_of_chunk.resize(chunk + 1);
      pipe_rank_of_chunk[chunk] = static_cast<int>(rank);
    }
  }
  const int pieces = static_cast<int>(pipe_rank_of_chunk.size());
  TROUPE_ASSIGN_OR_RETURN(const Partition partition, CutModel(job, pieces));
  for (int piece = 0; piece < pieces; ++piece) {
    const int first = partition.first_block[piece];
    const int end = piece + 1 < pieces ? partition.first_block[piece + 1] : model.num_blocks();
    auto* chunk = plan->add_chunks();
    chunk->set_chunk(piece);
    chunk->set_pipe_rank(pipe_rank_of_chunk[piece]);
    chunk->set_first_block(first);
    chunk->set_block_count(end - first);
    chunk->set_blocks(model.blocks.substr(first, end - first));
    chunk->set_has_embedding(piece == 0);
    chunk->set_has_head(piece == pieces - 1);
    int64_t parameters = 0;
    for (char block : chunk->blocks()) parameters += BlockParameters(model, block);
    if (chunk->has_embedding()) parameters += EmbeddingParameters(model);
    if (chunk->has_head()) {
      parameters += HeadParameters(model);
      // A tied matrix counts once where one rank has both ends of the model.
      const bool has_both = pipe_rank_of_chunk.front() == pipe_rank_of_chunk.back();
      if (has_both && model.tie_word_embeddings) parameters -= EmbeddingParameters(model);
    }
    chunk->set_parameters(parameters);
    chunk->set_forward_flops(ForwardFlops(job, *chunk));
  }
  plan->set_imbalance(partition.imbalance());
  plan->set_parameters(ModelParameters(model));
  const double samples = static_cast<double>(job.batch.global_batch_size);
  const double tokens = static_cast<double>(job.batch.sequence_length);
  if (!job.trained.globs.empty()) {
    TROUPE_ASSIGN_OR_RETURN(const TrainedWork work,
                            TrainedWorkOf(model, job.trained, job.batch.sequence_length));
    if (work.freezes) plan->set_trained_parameters(work.parameters);
    plan->set_model_flops_per_step(work.flops * samples);
    plan->set_attention_flops_per_step(work.attention_flops * samples);
    return OkStatus();
  }
  plan->set_model_flops_per_step(ModelFlops(model, samples, tokens));
  plan->set_attention_flops_per_step(AttentionFlops(model, samples, tokens));
  return OkStatus();
}

}  // namespace troupe
