// What a router does with logits: scalar code in float32, since it has one number for each token and
// expert where the products beside it have thousands. On one thread: a choice's slot depends on all
// choices before it.
#ifndef TROUPE_KERNELS_CPU_ROUTER_H_
#define TROUPE_KERNELS_CPU_ROUTER_H_

#include <cstdint>

#include "model/program/op.h"

namespace troupe::kernels::cpu {

struct RouterTopKArgs {
  const float* logits;  // f[R,E]
  const float* bias;    // f[E] or null
  float* weights;       // f[R,k]
  int32_t* chosen;      // i[R,k]
  int32_t* slots;       // i[R,k]
  int32_t* counts;      // i[E]
  int64_t rows;
  model::RouterAttributes router;
};
void RouterTopK(const RouterTopKArgs& args, int thread, int threads);

struct RouterTopKGradArgs {
  const float* dweights;  // f[R,k]
  const float* logits;    // f[R,E]
  const int32_t* chosen;  // i[R,k]
  float* dlogits;         // f[R,E]
  int64_t rows;
  model::RouterAttributes router;
};
void RouterTopKGrad(const RouterTopKGradArgs& args, int thread, int threads);

struct RouterLoadArgs {
  const int32_t* chosen;  // i[R,k]
  const float* weights;   // f[all rows of the tensor ranks]
  float* load;            // f[B,E+1]
  int64_t rows;           // R
  int64_t samples;        // B
  model::RouterAttributes router;
};
void RouterLoad(const RouterLoadArgs& args, int thread, int threads);

struct RouterSlotsArgs {
  const int32_t* chosen;  // i[R,k] of all ranks
  const int32_t* slots;   // i[R,k] of all ranks
  int32_t* own;           // i[R,k]
  int32_t* counts;        // i[L]
  int64_t choices;        // R·k
  model::RouterAttributes router;
};
void RouterSlots(const RouterSlotsArgs& args, int thread, int threads);

struct RouterLossArgs {
  const float* logits;      // f[R,E]
  const float* own_load;    // f[B,E+1] of this rank's rows
  const float* whole_load;  // f[B,E+1]
  const int32_t* counts;    // i[E]
  double* totals;           // d[3+E]
  int64_t rows;
  int64_t samples;
  model::RouterAttributes router;
  bool accumulate;
};
void RouterLoss(const RouterLossArgs& args, int thread, int threads);

struct RouterLossGradArgs {
  const float* logits;      // f[R,E]
  const float* whole_load;  // f[B,E+1]
  float* dlogits;           // f[R,E]
  int64_t rows;
  model::RouterAttributes router;
};
void RouterLossGrad(const RouterLossGradArgs& args, int thread, int threads);

// Scores of a token's logits: scores[E]; returns log Σ exp(logits).
float RouterScores(const float* logits, const model::RouterAttributes& router, float* scores);

}  // namespace troupe::kernels::cpu

#endif  // TROUPE_KERNELS_CPU_ROUTER_H_
