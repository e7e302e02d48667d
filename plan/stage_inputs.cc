#include "plan/stage_inputs.h"

namespace troupe {

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
  return config;
}

BatchGeometry MakeBatchGeometry(const v1::TrainingSpec& training, const Mesh& mesh) {
  return {.global_batch_size = training.global_batch_size(),
          .micro_batch_size = training.micro_batch_size(),
          .sequence_length = training.sequence_length(),
          .data_ranks = mesh.data_ranks()};
}

}  // namespace troupe
