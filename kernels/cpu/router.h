// The router's operations on logits: scalar float32 code, because it handles one number per token
// and expert where the adjacent matmuls handle thousands. Single-threaded, because the slot of a
// choice depends on all earlier choices.
#ifndef TROUPE_KERNELS_CPU_ROUTER_H_
#define TROUPE_KERNELS_CPU_ROUTER_H_

#include "kernels/arguments.h"

namespace troupe::kernels::cpu {

void RouterTopK(const RouterTopKArgs& args, int thread, int threads);
void RouterTopKGrad(const RouterTopKGradArgs& args, int thread, int threads);
void RouterLoad(const RouterLoadArgs& args, int thread, int threads);
void RouterSlots(const RouterSlotsArgs& args, int thread, int threads);
void RouterLoss(const RouterLossArgs& args, int thread, int threads);
void RouterLossGrad(const RouterLossGradArgs& args, int thread, int threads);

// bias[e] += rate · sign(mean - routed[e]), unless the control word reports a non-finite value.
void RouterBias(const RouterBiasArgs& args, int thread, int threads);

// Computes scores[E] from a token's logits; returns log Σ exp(logits).
float RouterScores(const float* logits, const model::RouterAttributes& router, float* scores);

}  // namespace troupe::kernels::cpu

#endif  // TROUPE_KERNELS_CPU_ROUTER_H_
