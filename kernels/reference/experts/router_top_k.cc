// The k best experts of each token, their weights, and the row of each assignment in a buffer
// sorted by expert, then token.
#include <algorithm>

#include "kernels/reference/experts/router_scores.h"
#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {

Status RouterTopK(const Operation& operation) {
  const auto& router = operation.attributes<model::RouterAttributes>();
  const int64_t rows = operation.Extent(0, 0), experts = router.experts, k = router.top_k;
  double *const weights = operation.outputs[0], *const expert_ids = operation.outputs[1],
                *const slots = operation.outputs[2], *const counts = operation.outputs[3];
  std::fill_n(counts, experts, 0.0);
  for (int64_t r = 0; r < rows; ++r) {
    const std::vector<double> scores =
        Scores(operation.inputs[0] + r * experts, experts, router.score);
    std::vector<double> key = scores;
    if (operation.inputs.size() > 1) {
      for (int64_t e = 0; e < experts; ++e) key[e] += operation.inputs[1][e];
    }
    double sum = 0;
    for (int64_t j = 0; j < k; ++j) {
      const int64_t best = std::max_element(key.begin(), key.end()) - key.begin();
      key[best] = -INFINITY;
      expert_ids[r * k + j] = static_cast<double>(best);
      weights[r * k + j] = scores[best];
      sum += scores[best];
    }
    if (!router.normalise) continue;
    for (int64_t j = 0; j < k; ++j) weights[r * k + j] /= sum;
  }
  double next = 0;
  for (int64_t e = 0; e < experts; ++e) {
    for (int64_t i = 0; i < rows * k; ++i) {
      if (expert_ids[i] != static_cast<double>(e)) continue;
      const bool full = router.capacity > 0 && counts[e] >= static_cast<double>(router.capacity);
      slots[i] = full ? -1 : next++;
      if (!full) counts[e] += 1;
    }
  }
  return OkStatus();
}

Status RouterTopKGrad(const Operation& operation) {
  const auto& router = operation.attributes<model::RouterAttributes>();
  const int64_t rows = operation.Extent(1, 0), experts = router.experts, k = router.top_k;
  for (int64_t r = 0; r < rows; ++r) {
    const double* dweights = operation.inputs[0] + r * k;
    const double* expert_ids = operation.inputs[2] + r * k;
    const std::vector<double> scores =
        Scores(operation.inputs[1] + r * experts, experts, router.score);
    double sum = 0, mean = 0;
    for (int64_t j = 0; j < k; ++j) sum += scores[static_cast<int64_t>(expert_ids[j])];
    for (int64_t j = 0; j < k; ++j) {
      mean += dweights[j] * scores[static_cast<int64_t>(expert_ids[j])] / sum;
    }
    std::vector<double> gradient(experts, 0.0);
    for (int64_t j = 0; j < k; ++j) {
      gradient[static_cast<int64_t>(expert_ids[j])] =
          router.normalise ? (dweights[j] - mean) / sum : dweights[j];
    }
    const std::vector<double> dlogits = ScoresGrad(scores, gradient, router.score);
    std::copy(dlogits.begin(), dlogits.end(), operation.outputs[0] + r * experts);
  }
  return OkStatus();
}

}  // namespace troupe::kernels::reference
