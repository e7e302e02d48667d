// The auxiliary and z losses of each sample row (formulas: model/ops/router_loss.cc).
#include <algorithm>
#include <numeric>

#include "kernels/reference/router_scores.h"
#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {
namespace {

double RowWeight(const double* weights, int64_t sample, int64_t tokens) {
  return std::accumulate(weights + sample * tokens, weights + (sample + 1) * tokens, 0.0);
}

// Probabilities over all experts: scores, of sigmoid routers over their sum.
std::vector<double> Normalised(std::vector<double> scores) {
  const double sum = std::accumulate(scores.begin(), scores.end(), 0.0);
  for (double& score : scores) score /= sum;
  return scores;
}

double AuxScale(const model::RouterAttributes& router) {
  const auto tokens = static_cast<double>(router.tokens);
  return router.aux_loss_coef * static_cast<double>(router.experts) /
         (static_cast<double>(router.top_k) * tokens * tokens);
}

}  // namespace

void RouterLoss(const Operation& operation) {
  const auto& router = operation.attributes<model::RouterAttributes>();
  const int64_t experts = router.experts, tokens = router.tokens;
  const int64_t samples = operation.Extent(1, 0);
  double* totals = operation.outputs[0];
  if (!operation.accumulate) std::fill_n(totals, model::kRouterLanes + experts, 0.0);
  for (int64_t b = 0; b < samples; ++b) {
    const double* routed = operation.inputs[1] + b * experts;
    double aux = 0, z = 0;
    for (int64_t t = b * tokens; t < (b + 1) * tokens; ++t) {
      const double* logits = operation.inputs[0] + t * experts;
      const std::vector<double> p = Normalised(Scores(logits, experts, router.score));
      for (int64_t e = 0; e < experts; ++e) aux += p[e] * routed[e];
      z += LogSumExp(logits, experts) * LogSumExp(logits, experts);
    }
    const double weight = RowWeight(operation.inputs[3], b, tokens);
    totals[0] += weight * AuxScale(router) * aux;
    totals[1] += weight * router.z_loss_coef * z / static_cast<double>(tokens);
    for (int64_t e = 0; e < experts; ++e) {
      totals[2] += routed[e];
      totals[model::kRouterLanes + e] += routed[e];
    }
  }
  totals[2] -= static_cast<double>(operation.SumOfCounts(2));
}

void RouterLossGrad(const Operation& operation) {
  const auto& router = operation.attributes<model::RouterAttributes>();
  const int64_t experts = router.experts, tokens = router.tokens;
  const int64_t samples = operation.Extent(1, 0);
  for (int64_t b = 0; b < samples; ++b) {
    const double weight = RowWeight(operation.inputs[2], b, tokens);
    const double* routed = operation.inputs[1] + b * experts;
    for (int64_t t = b * tokens; t < (b + 1) * tokens; ++t) {
      const double* logits = operation.inputs[0] + t * experts;
      const std::vector<double> scores = Scores(logits, experts, router.score);
      const double sum = std::accumulate(scores.begin(), scores.end(), 0.0);
      // Through p = score / sum, then through the scores.
      double mean = 0;
      for (int64_t e = 0; e < experts; ++e) mean += scores[e] / sum * routed[e];
      std::vector<double> gradient(experts);
      for (int64_t e = 0; e < experts; ++e) {
        gradient[e] = weight * AuxScale(router) * (routed[e] - mean) / sum;
      }
      const std::vector<double> aux = ScoresGrad(scores, gradient, router.score);
      const std::vector<double> softmax = Scores(logits, experts, model::RouterScore::kSoftmax);
      const double z = weight * router.z_loss_coef / static_cast<double>(tokens) * 2 *
                       LogSumExp(logits, experts);
      for (int64_t e = 0; e < experts; ++e) {
        operation.outputs[0][t * experts + e] = aux[e] + z * softmax[e];
      }
    }
  }
}

}  // namespace troupe::kernels::reference
