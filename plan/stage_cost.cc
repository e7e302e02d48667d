#include "plan/stage_cost.h"

#include "plan/estimate.h"
#include "plan/mesh.h"
#include "plan/stage_inputs.h"

namespace troupe {

using model::Axis;

StatusOr<StageCost> CostOfStage(const v1::JobSpec& spec, const v1::Plan& plan, int pipe_rank) {
  TROUPE_ASSIGN_OR_RETURN(const model::ModelConfig model, MakeModelConfig(spec.model()));
  const Mesh mesh(plan.mesh());
  const BatchGeometry batch = MakeBatchGeometry(spec.training(), mesh);
  const double tensor = mesh.degree(Axis::kTensor);
  const double replicas = mesh.degree(Axis::kDataReplicate);
  const bool is_bfloat16 = spec.training().compute_dtype() == "bfloat16";
  const double element_bytes = is_bfloat16 ? 2 : 4;
  const double rows = static_cast<double>(batch.tokens_per_microbatch());
  const double hidden = static_cast<double>(model.hidden_size);
  const double query = static_cast<double>(model.head_dim * model.num_attention_heads) / tensor;
  const double key_value = static_cast<double>(model.head_dim * model.num_key_value_heads) / tensor;
  const double ffn = static_cast<double>(model.intermediate_size) / tensor;
  const double vocab = static_cast<double>(model.vocab_size) / tensor;

  double parameters = 0;
  double norms = 0;           // parameters that tensor does not shard
  double saved_elements = 0;  // of one live microbatch, in compute dtype
  double saved_bytes = 0;
  double tensor_reductions = 0;  // hidden-sized all-reduces of a microbatch
  double temporary_elements = 0;
  bool is_first = false;
  bool is_last = false;
  for (const auto& chunk : plan.chunks()) {
    if (chunk.pipe_rank() != pipe_rank) continue;
    for (char block : chunk.blocks()) {
      parameters += static_cast<double>(BlockParameters(model, block)) - hidden;
      norms += hidden;
      saved_elements += 2 * rows * hidden;
      saved_elements += block == 'A' ? rows * (3 * query + 4 * key_value) : rows * 3 * ffn;
      saved_bytes += rows * 4 * (block == 'A' ? 1 + query / static_cast<double>(model.head_dim) : 1);
      tensor_reductions += 2;
      temporary_elements = std::max(temporary_elements, rows * (3 * hidden + 3 * ffn));
      temporary_elements = std::max(temporary_elements, rows * (3 * hidden + 2 * query + 4 * key_value));
    }
    if (chunk.has_embedding()) {
      is_first = true;
      parameters += static_cast<double>(EmbeddingParameters(model));
      tensor_reductions += 1;
    }
    if (chunk.has_head()) {
      is_last = true;
      if (!(chunk.has_embedding() && model.tie_word_embeddings)) {
        parameters += static_cast<double>(EmbeddingParameters(model));
      }
      norms += hidden;
      saved_elements += 2 * rows * hidden;
      tensor_reductions += 1;
      temporary_elements = std::max(temporary_elements, rows * (2 * hidden + vocab));
    }
    if (!chunk.has_embedding()) saved_elements += rows * hidden;
  }
  const double local = parameters / tensor + norms;
  const double live = plan.schedule().ranks(pipe_rank).peak_live_activations();

  StageCost cost;
  auto& memory = cost.memory;
  memory.set_parameter_bytes(static_cast<int64_t>(local * 4));
  memory.set_compute_copy_bytes(is_bfloat16 ? static_cast<int64_t>(local * 2) : 0);
  memory.set_gradient_bytes(static_cast<int64_t>(local * 4));
  memory.set_optimizer_bytes(static_cast<int64_t>(local * 8));
  memory.set_saved_bytes(static_cast<int64_t>(live * (saved_elements * element_bytes + saved_bytes)));
  memory.set_temporary_bytes(static_cast<int64_t>(temporary_elements * element_bytes));
  memory.set_total_bytes(memory.parameter_bytes() + memory.compute_copy_bytes() +
                         memory.gradient_bytes() + memory.optimizer_bytes() +
                         memory.saved_bytes() + memory.temporary_bytes());

  const auto add = [&](const char* axis, const char* purpose, double bytes) {
    if (bytes <= 0) return;
    v1::AxisTraffic entry;
    entry.set_axis(axis);
    entry.set_purpose(purpose);
    entry.set_bytes_per_step(bytes);
    cost.traffic.push_back(std::move(entry));
  };
  // A ring all-reduce over n ranks sends 2(n-1)/n of its size from each.
  const auto all_reduce = [](double degree, double bytes) {
    return 2 * (degree - 1) / degree * bytes;
  };
  const double microbatches = batch.microbatches();
  const double hidden_bytes = rows * hidden * element_bytes;
  double tensor_bytes = tensor_reductions * hidden_bytes;
  if (is_last) tensor_bytes += rows * 4 * 3;
  add("tensor", "tensor", all_reduce(tensor, tensor_bytes * microbatches));
  add("pipe", "pipe", microbatches * hidden_bytes * ((is_first ? 0 : 1) + (is_last ? 0 : 1)));
  add("data_replicate", "gradient", all_reduce(replicas, local * 4));
  if (model.tie_word_embeddings && is_first != is_last) {
    add("pipe", "gradient",
        all_reduce(2, static_cast<double>(EmbeddingParameters(model)) / tensor * 4));
  }
  return cost;
}

}  // namespace troupe
