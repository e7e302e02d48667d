#include "plan/estimate.h"

#include <algorithm>

#include "base/check.h"

namespace troupe {
namespace {

int64_t QueryWidth(const model::ModelConfig& model) {
  return model.head_dim * model.num_attention_heads;
}
int64_t KeyValueWidth(const model::ModelConfig& model) {
  return model.head_dim * model.num_key_value_heads;
}

// FLOPs of scores and values, over half of the square.
double PairForwardFlops(const model::ModelConfig& model, double samples, double tokens) {
  return 2 * samples * tokens * tokens * static_cast<double>(QueryWidth(model));
}

}  // namespace

double BlockForwardFlops(const model::ModelConfig& model, char block, double samples,
                         double tokens) {
  const double all_tokens = samples * tokens;
  const double hidden = static_cast<double>(model.hidden_size);
  const double query = static_cast<double>(QueryWidth(model));
  const double key_value = static_cast<double>(KeyValueWidth(model));
  if (block == 'A') {
    // Input and output projections.
    return 2 * all_tokens * hidden * (2 * query + 2 * key_value) +
           PairForwardFlops(model, samples, tokens);
  }
  if (block == 'E') {
    // Active parameters: the experts that process a token.
    const model::ExpertConfig& e = model.experts;
    return 2 * all_tokens * hidden * 3 * static_cast<double>(e.moe_intermediate_size) *
           static_cast<double>(e.num_experts_per_tok + e.num_shared_experts);
  }
  TROUPE_CHECK(block == 'D', "block {}", block);
  return 2 * all_tokens * hidden * static_cast<double>(model.intermediate_size) * 3;
}

double HeadForwardFlops(const model::ModelConfig& model, double samples, double tokens) {
  return 2 * samples * tokens * static_cast<double>(model.hidden_size) *
         static_cast<double>(model.vocab_size);
}

PassFlops BlockPassFlops(const model::ModelConfig& model, char block, double samples,
                         double tokens) {
  const double forward = BlockForwardFlops(model, block, samples, tokens);
  const double scores =
      block == 'A' ? 2 * samples * tokens * tokens * static_cast<double>(QueryWidth(model)) : 0;
  return {forward, forward + scores, forward - scores};
}

PassFlops HeadPassFlops(const model::ModelConfig& model, double samples, double tokens) {
  return {3 * HeadForwardFlops(model, samples, tokens), 0, 0};
}

double ModelFlops(const model::ModelConfig& model, double samples, double tokens) {
  double forward = HeadForwardFlops(model, samples, tokens);
  for (char block : model.blocks) forward += BlockForwardFlops(model, block, samples, tokens);
  return 3 * forward;
}

double AttentionFlops(const model::ModelConfig& model, double samples, double tokens) {
  const auto blocks = std::count(model.blocks.begin(), model.blocks.end(), 'A');
  return 3 * static_cast<double>(blocks) * PairForwardFlops(model, samples, tokens);
}

int64_t BlockParameters(const model::ModelConfig& model, char block) {
  const int64_t hidden = model.hidden_size;
  if (block == 'A') return hidden * (2 * QueryWidth(model) + 2 * KeyValueWidth(model)) + hidden;
  if (block == 'E') {
    const model::ExpertConfig& e = model.experts;
    return hidden * (3 * e.moe_intermediate_size * (e.num_experts + e.num_shared_experts) +
                     e.num_experts + 1);
  }
  TROUPE_CHECK(block == 'D', "block {}", block);
  return hidden * model.intermediate_size * 3 + hidden;
}

int64_t EmbeddingParameters(const model::ModelConfig& model) {
  return model.vocab_size * model.hidden_size;
}

int64_t HeadParameters(const model::ModelConfig& model) {
  return model.vocab_size * model.hidden_size + model.hidden_size;
}

int64_t ModelParameters(const model::ModelConfig& model) {
  int64_t parameters = EmbeddingParameters(model) + HeadParameters(model);
  if (model.tie_word_embeddings) parameters -= EmbeddingParameters(model);
  for (char block : model.blocks) parameters += BlockParameters(model, block);
  return parameters;
}

}  // namespace troupe
