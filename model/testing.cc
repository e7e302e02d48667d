#include "model/testing.h"

#include "model/blocks/pattern.h"

namespace troupe::model {

ModelConfig SmallModel(std::string blocks) {
  ModelConfig model;
  model.blocks = std::move(blocks);
  model.hidden_size = 16;
  model.num_attention_heads = 4;
  model.num_key_value_heads = 2;
  model.head_dim = 4;
  model.intermediate_size = 21;
  model.vocab_size = 37;
  return model;
}

ModelConfig SmallMixture(std::string blocks) {
  ModelConfig model = SmallModel(std::move(blocks));
  model.experts.num_experts = 4;
  model.experts.num_experts_per_tok = 2;
  model.experts.moe_intermediate_size = 10;
  model.experts.num_shared_experts = 1;
  model.experts.aux_loss_coef = 0.1;
  model.experts.z_loss_coef = 0.05;
  return model;
}

ModelConfig Llama124m() {
  ModelConfig model;
  model.blocks = ExpandPattern("(AD)x12").value();
  model.hidden_size = 768;
  model.num_attention_heads = 12;
  model.num_key_value_heads = 12;
  model.head_dim = 64;
  model.intermediate_size = 2048;
  model.vocab_size = 50304;
  model.tie_word_embeddings = true;
  return model;
}

BuildOptions StageOptions(const ModelConfig& model, const MeshView& mesh, int64_t micro_batch_size,
                          int64_t sequence_length) {
  const int stages = mesh.degrees[Axis::kPipe], stage = mesh.coordinates[Axis::kPipe];
  const Range blocks = BalancedRange(model.num_blocks(), stages, stage);
  BuildOptions options;
  options.model = model;
  options.mesh = mesh;
  options.chunks = {{stage, static_cast<int>(blocks.begin), static_cast<int>(blocks.size()),
                     stage == 0, stage == stages - 1}};
  options.micro_batch_size = micro_batch_size;
  options.sequence_length = sequence_length;
  return options;
}

bool IsMatmul(const Op& op) {
  return op.kind == OpKind::kMatmul || op.kind == OpKind::kMatmulGradInput ||
         op.kind == OpKind::kMatmulGradWeight;
}

}  // namespace troupe::model
