// A model as numbers and a sequence of blocks.
//
// A plain value; the code that creates it (plan/validate/decoded_job) validates it. Thread-safe if
// not modified.
#ifndef TROUPE_MODEL_BLOCKS_CONFIG_H_
#define TROUPE_MODEL_BLOCKS_CONFIG_H_

#include <cstdint>
#include <string>

#include "model/program/rope_scaling.h"
#include "model/program/router_score.h"

namespace troupe::model {

// Configuration of block E.
struct ExpertConfig {
  int64_t num_experts = 0;
  int64_t num_experts_per_tok = 0;
  int64_t moe_intermediate_size = 0;
  int64_t num_shared_experts = 0;  // used by every token; together one MLP of their summed size
  RouterScore score = RouterScore::kSoftmax;
  bool norm_topk_prob = true;
  double aux_loss_coef = 0;
  double z_loss_coef = 0;
  double capacity_factor = 0;   // 0: dropless
  double bias_update_rate = 0;  // 0: no bias
};

struct ModelConfig {
  std::string blocks;  // one letter of model/blocks/block_kinds.def per block: "ADADADAD"
  int64_t hidden_size = 0;
  int64_t num_attention_heads = 0;
  int64_t num_key_value_heads = 0;
  int64_t head_dim = 0;
  int64_t intermediate_size = 0;
  int64_t vocab_size = 0;
  bool tie_word_embeddings = false;
  double rope_theta = 10000.0;
  RopeScaling rope_scaling;
  double norm_eps = 1e-5;
  double initializer_range = 0.02;  // the standard deviation of initial weights
  ExpertConfig experts;
  // Dropout probability, below 1, of every block's output and of the embedding.
  double hidden_dropout = 0;

  int num_blocks() const { return static_cast<int>(blocks.size()); }
};

}  // namespace troupe::model

#endif  // TROUPE_MODEL_BLOCKS_CONFIG_H_
