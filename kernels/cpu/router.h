// What a router does with logits: scalar code in float32, since it has one number for each token and
// expert where the products beside it have thousands. On one thread: a choice's slot depends on all
// choices before it.
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

// bias[e] += rate · sign(mean - routed[e]), unless the control word says that something is not finite.
void RouterBias(const RouterBiasArgs& args, int thread, int threads);

// Scores of a token's logits: scores[E]; returns log Σ exp(logits).
float RouterScores(const float* logits, const model::RouterAttributes& router, float* scores);

}  // namespace troupe::kernels::cpu

#endif  // TROUPE_KERNELS_CPU_ROUTER_H_
