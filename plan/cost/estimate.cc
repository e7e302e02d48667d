#include "plan/cost/estimate.h"

#include <algorithm>

#include "model/blocks/block_kind.h"

namespace troupe {

double BlockForwardFlops(const model::ModelConfig& model, char block, double samples,
                         double tokens) {
  return model::BlockKindOf(block).flops(model, samples, tokens).total();
}

double HeadForwardFlops(const model::ModelConfig& model, double samples, double tokens) {
  return 2 * samples * tokens * static_cast<double>(model.hidden_size) *
         static_cast<double>(model.vocab_size);
}

PassFlops BlockPassFlops(const model::ModelConfig& model, char block, double samples,
                         double tokens) {
  const model::BlockFlops flops = model::BlockKindOf(block).flops(model, samples, tokens);
  const double forward = flops.total();
  return {forward, forward + flops.pairs, forward - flops.pairs};
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
  double flops = 0;
  for (const model::BlockKind* kind : model::BlockKinds()) {
    const auto blocks = std::count(model.blocks.begin(), model.blocks.end(), kind->letter);
    if (blocks == 0) continue;
    flops += 3 * static_cast<double>(blocks) * kind->flops(model, samples, tokens).pairs;
  }
  return flops;
}

int64_t BlockParameters(const model::ModelConfig& model, char block) {
  return model::BlockKindOf(block).parameters(model);
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
