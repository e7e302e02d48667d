// The scores of a token's logits.
#ifndef TROUPE_KERNELS_REFERENCE_EXPERTS_ROUTER_SCORES_H_
#define TROUPE_KERNELS_REFERENCE_EXPERTS_ROUTER_SCORES_H_

#include <cmath>
#include <cstdint>
#include <vector>

#include "model/program/router_score.h"

namespace troupe::kernels::reference {

inline double LogSumExp(const double* logits, int64_t experts) {
  double largest = logits[0], sum = 0;
  for (int64_t e = 0; e < experts; ++e) largest = std::fmax(largest, logits[e]);
  for (int64_t e = 0; e < experts; ++e) sum += std::exp(logits[e] - largest);
  return largest + std::log(sum);
}

inline std::vector<double> Scores(const double* logits, int64_t experts, model::RouterScore score) {
  std::vector<double> scores(experts);
  const double log_sum = LogSumExp(logits, experts);
  for (int64_t e = 0; e < experts; ++e) {
    scores[e] = score == model::RouterScore::kSoftmax ? std::exp(logits[e] - log_sum)
                                                      : 1 / (1 + std::exp(-logits[e]));
  }
  return scores;
}

// The gradient with respect to the logits, given that with respect to their scores.
inline std::vector<double> ScoresGrad(const std::vector<double>& scores,
                                      const std::vector<double>& gradient,
                                      model::RouterScore score) {
  const size_t experts = scores.size();
  std::vector<double> result(experts);
  double mean = 0;
  for (size_t e = 0; e < experts; ++e) mean += scores[e] * gradient[e];
  for (size_t e = 0; e < experts; ++e) {
    result[e] = score == model::RouterScore::kSoftmax ? scores[e] * (gradient[e] - mean)
                                                      : gradient[e] * scores[e] * (1 - scores[e]);
  }
  return result;
}

}  // namespace troupe::kernels::reference

#endif  // TROUPE_KERNELS_REFERENCE_EXPERTS_ROUTER_SCORES_H_
