// Scores of the router's kernels. These kernels (router_….cc) are scalar float32 code, because they
// handle one number per token and expert where the adjacent matmuls handle thousands, and run on
// one thread, because the slot of an assignment depends on all earlier ones.
#ifndef TROUPE_KERNELS_CPU_EXPERTS_ROUTER_H_
#define TROUPE_KERNELS_CPU_EXPERTS_ROUTER_H_

#include "model/program/router_attributes.h"

namespace troupe::kernels::cpu {

// Computes scores[E] from a token's logits; returns log Σ exp(logits).
float RouterScores(const float* logits, const model::RouterAttributes& router, float* scores);

}  // namespace troupe::kernels::cpu

#endif  // TROUPE_KERNELS_CPU_EXPERTS_ROUTER_H_
