// The auxiliary and z losses of each sample row (formulas: model/ops/experts/router_loss.cc).
#include <algorithm>
#include <cmath>

#include "kernels/cpu/experts/router.h"
#include "kernels/cpu/kernels.h"

namespace troupe::kernels::cpu {
namespace {

// The load of the sample that contains `row` of this rank.
const float* LoadOf(const float* load, const model::RouterAttributes& router, int64_t row) {
  return load + (router.first_row + row) / router.local_tokens * (router.experts + 1);
}

// coef · E / (k·T²)
double AuxScale(const model::RouterAttributes& router) {
  const auto tokens = static_cast<double>(router.tokens);
  return router.aux_loss_coef * static_cast<double>(router.experts) /
         (static_cast<double>(router.top_k) * tokens * tokens);
}

// Divides the scores by their sum and returns the sum.
float Normalise(float* scores, int64_t experts) {
  float sum = 0;
  for (int64_t e = 0; e < experts; ++e) sum += scores[e];
  for (int64_t e = 0; e < experts; ++e) scores[e] /= sum;
  return sum;
}

}  // namespace

void RouterLoss(const RouterLossArgs& args, int, int) {
  const int64_t experts = args.router.experts;
  double* totals = args.totals;
  if (!args.accumulate) std::fill_n(totals, model::kRouterLanes + experts, 0.0);
  const double aux_scale = AuxScale(args.router);
  const double z_scale = args.router.z_loss_coef / static_cast<double>(args.router.tokens);
  float p[model::kMaxExperts];
  for (int64_t r = 0; r < args.rows; ++r) {
    const float* load = LoadOf(args.whole_load, args.router, r);
    const double log_sum = RouterScores(args.logits + r * experts, args.router, p);
    Normalise(p, experts);
    double aux = 0;
    for (int64_t e = 0; e < experts; ++e) aux += static_cast<double>(p[e]) * load[e];
    totals[0] += load[experts] * aux_scale * aux;
    totals[1] += load[experts] * z_scale * log_sum * log_sum;
  }
  for (int64_t b = 0; b < args.samples; ++b) {
    for (int64_t e = 0; e < experts; ++e) {
      const double routed = args.own_load[b * (experts + 1) + e];
      totals[2] += routed;
      totals[model::kRouterLanes + e] += routed;
    }
  }
  for (int64_t e = 0; e < experts; ++e) totals[2] -= args.counts[e];
}

void RouterLossGrad(const RouterLossGradArgs& args, int, int) {
  const int64_t experts = args.router.experts;
  float p[model::kMaxExperts];
  for (int64_t r = 0; r < args.rows; ++r) {
    const float* routed = LoadOf(args.whole_load, args.router, r);
    const double weight = routed[experts];
    const auto aux = static_cast<float>(weight * AuxScale(args.router));
    const auto z_scale = static_cast<float>(weight * args.router.z_loss_coef * 2 /
                                            static_cast<double>(args.router.tokens));
    const float* logits = args.logits + r * experts;
    float* dlogits = args.dlogits + r * experts;
    const float log_sum = RouterScores(logits, args.router, p);
    const float sum = Normalise(p, experts);
    float mean = 0;
    for (int64_t e = 0; e < experts; ++e) mean += p[e] * routed[e];
    for (int64_t e = 0; e < experts; ++e) {
      // For softmax the scores are p; for sigmoid s = p·sum and ds/dl = s·(1-s).
      const float slope =
          args.router.score == model::RouterScore::kSoftmax ? p[e] : p[e] * (1 - p[e] * sum);
      dlogits[e] =
          aux * slope * (routed[e] - mean) + z_scale * log_sum * std::exp(logits[e] - log_sum);
    }
  }
}

}  // namespace troupe::kernels::cpu
