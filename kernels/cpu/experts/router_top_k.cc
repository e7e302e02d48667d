#include <algorithm>
#include <cmath>

#include "kernels/cpu/experts/router.h"
#include "kernels/cpu/kernels.h"

namespace troupe::kernels::cpu {

float RouterScores(const float* logits, const model::RouterAttributes& router, float* scores) {
  const int64_t experts = router.experts;
  const float largest = *std::max_element(logits, logits + experts);
  float sum = 0;
  for (int64_t e = 0; e < experts; ++e) {
    const float exponential = std::exp(logits[e] - largest);
    sum += exponential;
    scores[e] =
        router.score == model::RouterScore::kSoftmax ? exponential : 1 / (1 + std::exp(-logits[e]));
  }
  if (router.score == model::RouterScore::kSoftmax) {
    for (int64_t e = 0; e < experts; ++e) scores[e] /= sum;
  }
  return largest + std::log(sum);
}

void RouterTopK(const RouterTopKArgs& args, int, int) {
  const int64_t experts = args.router.experts, k = args.router.top_k;
  std::fill_n(args.counts, experts, 0);
  float scores[model::kMaxExperts];
  for (int64_t r = 0; r < args.rows; ++r) {
    RouterScores(args.logits + r * experts, args.router, scores);
    int32_t* expert_ids = args.expert_ids + r * k;
    float* weights = args.weights + r * k;
    float sum = 0;
    for (int64_t j = 0; j < k; ++j) {
      int32_t best = -1;
      float most = 0;
      for (int32_t e = 0; e < experts; ++e) {
        const float key = args.bias != nullptr ? scores[e] + args.bias[e] : scores[e];
        const bool taken = std::find(expert_ids, expert_ids + j, e) != expert_ids + j;
        if (!taken && (best < 0 || key > most)) {
          best = e;
          most = key;
        }
      }
      expert_ids[j] = best;
      weights[j] = scores[best];
      sum += scores[best];
      if (args.router.capacity == 0 || args.counts[best] < args.router.capacity) {
        ++args.counts[best];
      }
    }
    if (!args.router.normalise) continue;
    for (int64_t j = 0; j < k; ++j) weights[j] /= sum;
  }
  int32_t next[model::kMaxExperts], end[model::kMaxExperts];
  int32_t first = 0;
  for (int64_t e = 0; e < experts; ++e) {
    next[e] = first;
    first += args.counts[e];
    end[e] = first;
  }
  for (int64_t i = 0; i < args.rows * k; ++i) {
    const int32_t e = args.expert_ids[i];
    args.slots[i] = next[e] < end[e] ? next[e]++ : -1;
  }
}

void RouterTopKGrad(const RouterTopKGradArgs& args, int, int) {
  const int64_t experts = args.router.experts, k = args.router.top_k;
  float scores[model::kMaxExperts];
  for (int64_t r = 0; r < args.rows; ++r) {
    RouterScores(args.logits + r * experts, args.router, scores);
    const float* dweights = args.dweights + r * k;
    const int32_t* expert_ids = args.expert_ids + r * k;
    float* dlogits = args.dlogits + r * experts;
    // dlogits first holds the gradient of the scores.
    std::fill_n(dlogits, experts, 0.0f);
    float sum = 1, mean = 0;
    if (args.router.normalise) {
      sum = 0;
      for (int64_t j = 0; j < k; ++j) sum += scores[expert_ids[j]];
      for (int64_t j = 0; j < k; ++j) mean += dweights[j] * scores[expert_ids[j]] / sum;
    }
    float along = 0;  // Σ score · gradient
    for (int64_t j = 0; j < k; ++j) {
      dlogits[expert_ids[j]] = (dweights[j] - mean) / sum;
      along += scores[expert_ids[j]] * dlogits[expert_ids[j]];
    }
    for (int64_t e = 0; e < experts; ++e) {
      dlogits[e] = args.router.score == model::RouterScore::kSoftmax
                       ? scores[e] * (dlogits[e] - along)
                       : dlogits[e] * scores[e] * (1 - scores[e]);
    }
  }
}

}  // namespace troupe::kernels::cpu
