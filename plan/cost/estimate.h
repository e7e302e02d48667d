// The size and the work of a model, from its dimensions: parameters and model FLOPs. Pure.
//
// FLOPs follow the convention "model FLOPs, version 1": a matmul of m×k by k×n counts 2mnk,
// backward counts twice the forward, causal attention counts half of the square, tokens are real
// tokens, the vocabulary is the stated one (no padding), and normalisation and other element-wise
// operations count nothing.
#ifndef TROUPE_PLAN_COST_ESTIMATE_H_
#define TROUPE_PLAN_COST_ESTIMATE_H_

#include <cstdint>

#include "model/blocks/config.h"

namespace troupe {

// Forward FLOPs for `samples` samples of `tokens` tokens each; multiply by 3 to include backward.
double BlockForwardFlops(const model::ModelConfig& model, char block, double samples,
                         double tokens);
double HeadForwardFlops(const model::ModelConfig& model, double samples, double tokens);

// FLOPs of one forward and backward over a block or the head, by the action that executes them. A
// matmul has as many for the gradient of its input, and for that of its weight, as for forward.
// Attention scores have no weights and twice as many in backward. The head computes its gradients
// in its forward, while the logits exist.
struct PassFlops {
  double forward = 0;
  double input_gradient = 0;
  double weight_gradient = 0;
};
PassFlops BlockPassFlops(const model::ModelConfig& model, char block, double samples,
                         double tokens);
PassFlops HeadPassFlops(const model::ModelConfig& model, double samples, double tokens);

// FLOPs of forward and backward of the whole model.
double ModelFlops(const model::ModelConfig& model, double samples, double tokens);
// The part of ModelFlops that is due to query-key pairs.
double AttentionFlops(const model::ModelConfig& model, double samples, double tokens);

// Elements before any sharding. A block's own norm is counted with the block, the final norm with
// the head.
int64_t BlockParameters(const model::ModelConfig& model, char block);
int64_t EmbeddingParameters(const model::ModelConfig& model);
int64_t HeadParameters(const model::ModelConfig& model);  // final norm + output matrix, tied or not

// Parameters of the whole model; a tied matrix counts once.
int64_t ModelParameters(const model::ModelConfig& model);

}  // namespace troupe

#endif  // TROUPE_PLAN_COST_ESTIMATE_H_
