// The auxiliary and z losses of each sample row (formulas: model/ops/router_loss.cc).
#include <algorithm>
#include <cmath>

#include "kernels/cpu/router.h"

namespace troupe::kernels::cpu {
namespace {

double RowWeight(const float* weights, int64_t tokens) {
  double sum = 0;
  for (int64_t t = 0; t < tokens; ++t) sum += weights[t];
  return sum;
}

// coef · E / (k·T²)
double AuxScale(const model::RouterAttributes& router) {
  const auto tokens = static_cast<double>(router.tokens);
  return router.aux_loss_coef * static_cast<double>(router.experts) /
         (static_cast<double>(router.top_k) * tokens * tokens);
}

// scores over their sum, which is returned.
float Normalise(float* scores, int64_t experts) {
  float sum = 0;
  for (int64_t e = 0; e < experts; ++e) sum += scores[e];
  for (int64_t e = 0; e < experts; ++e) scores[e] /= sum;
  return sum;
}

}  // namespace

void RouterLoss(const RouterLossArgs& args, int, int) {
  const int64_t experts = args.router.experts, tokens = args.router.tokens;
  double* totals = args.totals;
  if (!args.accumulate) std::fill_n(totals, model::kRouterLanes + experts, 0.0);
  float p[model::kMaxExperts];
  for (int64_t b = 0; b < args.samples; ++b) {
    const float* routed = args.routed + b * experts;
    double aux = 0, z = 0;
    for (int64_t t = b * tokens; t < (b + 1) * tokens; ++t) {
      const double log_sum = RouterScores(args.logits + t * experts, args.router, p);
      Normalise(p, experts);
      for (int64_t e = 0; e < experts; ++e) aux += static_cast<double>(p[e]) * routed[e];
      z += log_sum * log_sum;
    }
    const double weight = RowWeight(args.weights + b * tokens, tokens);
    totals[0] += weight * AuxScale(args.router) * aux;
    totals[1] += weight * args.router.z_loss_coef * z / static_cast<double>(tokens);
    for (int64_t e = 0; e < experts; ++e) {
      totals[2] += routed[e];
      totals[model::kRouterLanes + e] += routed[e];
    }
  }
  for (int64_t e = 0; e < experts; ++e) totals[2] -= args.counts[e];
}

void RouterLossGrad(const RouterLossGradArgs& args, int, int) {
  const int64_t experts = args.router.experts, tokens = args.router.tokens;
  float p[model::kMaxExperts];
  for (int64_t b = 0; b < args.samples; ++b) {
    const double weight = RowWeight(args.weights + b * tokens, tokens);
    const auto aux = static_cast<float>(weight * AuxScale(args.router));
    const auto z_scale =
        static_cast<float>(weight * args.router.z_loss_coef * 2 / static_cast<double>(tokens));
    const float* routed = args.routed + b * experts;
    for (int64_t t = b * tokens; t < (b + 1) * tokens; ++t) {
      const float* logits = args.logits + t * experts;
      float* dlogits = args.dlogits + t * experts;
      const float log_sum = RouterScores(logits, args.router, p);
      const float sum = Normalise(p, experts);
      float mean = 0;
      for (int64_t e = 0; e < experts; ++e) mean += p[e] * routed[e];
      for (int64_t e = 0; e < experts; ++e) {
        // A softmax's scores are p; a sigmoid's s = p·sum, and ds/dl = s·(1-s).
        const float slope =
            args.router.score == model::RouterScore::kSoftmax ? p[e] : p[e] * (1 - p[e] * sum);
        dlogits[e] = aux * slope * (routed[e] - mean) +
                     z_scale * log_sum * std::exp(logits[e] - log_sum);
      }
    }
  }
}

}  // namespace troupe::kernels::cpu
