// What a plan costs, from the sizes of the model: parameters, model FLOPs. Pure.
//
// FLOPs follow facts' convention "model FLOPs, version 1": a product of m×k by k×n counts 2mnk, backward twice forward,
// causal attention half of the square, real tokens, the vocabulary as stated (no padding), normalisation and other
// element-wise work not at all.
#ifndef TROUPE_PLAN_ESTIMATE_H_
#define TROUPE_PLAN_ESTIMATE_H_

#include <cstdint>

#include "model/config.h"

namespace troupe {

// Forward FLOPs of `samples` samples of `tokens` tokens; × 3 with backward.
double BlockForwardFlops(const model::ModelConfig& model, char block, double samples, double tokens);
double HeadForwardFlops(const model::ModelConfig& model, double samples, double tokens);

// FLOPs of one pass over a block, or the head, by the part of it in which they are done: products have as many for the
// gradient of the inputs, and of the weights, as forward; attention scores have no weights and twice as many backward;
// the head makes its gradients in its forward, while the logits are there.
struct PassFlops {
  double forward = 0;
  double input_gradient = 0;
  double weight_gradient = 0;
};
PassFlops BlockPassFlops(const model::ModelConfig& model, char block, double samples, double tokens);
PassFlops HeadPassFlops(const model::ModelConfig& model, double samples, double tokens);

// Forward and backward of the whole model.
double ModelFlops(const model::ModelConfig& model, double samples, double tokens);
// Of these, what query-key pairs cost.
double AttentionFlops(const model::ModelConfig& model, double samples, double tokens);

// Elements, before any sharding. The block's own norm is counted with it; the final norm with the head.
int64_t BlockParameters(const model::ModelConfig& model, char block);
int64_t EmbeddingParameters(const model::ModelConfig& model);
int64_t HeadParameters(const model::ModelConfig& model);  // final norm + output matrix, tied or not

// Of the whole model; a tied matrix counts once.
int64_t ModelParameters(const model::ModelConfig& model);

}  // namespace troupe

#endif  // TROUPE_PLAN_ESTIMATE_H_
