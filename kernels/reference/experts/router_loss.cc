// The auxiliary and z losses of each sample row (formulas: model/ops/experts/router_loss.cc).
#include <algorithm>
#include <numeric>

#include "kernels/reference/experts/router_scores.h"
#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {
namespace {

// The index of the sample that contains `row` of this rank.
int64_t SampleOf(const model::RouterAttributes& router, int64_t row) {
  return (router.first_row + row) / router.local_tokens;
}

// Probabilities over all experts: scores divided by their sum, which is 1 for softmax.
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

Status RouterLoss(const Operation& operation) {
  const auto& router = operation.attributes<model::RouterAttributes>();
  const int64_t experts = router.experts, rows = operation.Extent(0, 0);
  const int64_t samples = operation.Extent(1, 0);
  double* totals = operation.outputs[0];
  if (!operation.accumulate) std::fill_n(totals, model::kRouterLanes + experts, 0.0);
  for (int64_t r = 0; r < rows; ++r) {
    const double* load = operation.inputs[2] + SampleOf(router, r) * (experts + 1);
    const double* logits = operation.inputs[0] + r * experts;
    const std::vector<double> p = Normalised(Scores(logits, experts, router.score));
    double aux = 0;
    for (int64_t e = 0; e < experts; ++e) aux += p[e] * load[e];
    const double z = LogSumExp(logits, experts) * LogSumExp(logits, experts);
    const double weight = load[experts];
    totals[0] += weight * AuxScale(router) * aux;
    totals[1] += weight * router.z_loss_coef * z / static_cast<double>(router.tokens);
  }
  for (int64_t b = 0; b < samples; ++b) {
    for (int64_t e = 0; e < experts; ++e) {
      const double routed = operation.inputs[1][b * (experts + 1) + e];
      totals[2] += routed;
      totals[model::kRouterLanes + e] += routed;
    }
  }
  totals[2] -= static_cast<double>(operation.SumOfCounts(3));
  return OkStatus();
}

Status RouterLossGrad(const Operation& operation) {
  const auto& router = operation.attributes<model::RouterAttributes>();
  const int64_t experts = router.experts, rows = operation.Extent(0, 0);
  for (int64_t r = 0; r < rows; ++r) {
    const double* routed = operation.inputs[1] + SampleOf(router, r) * (experts + 1);
    const double weight = routed[experts];
    const double* logits = operation.inputs[0] + r * experts;
    const std::vector<double> scores = Scores(logits, experts, router.score);
    const double sum = std::accumulate(scores.begin(), scores.end(), 0.0);
    // The gradient through p = score / sum, then through the scores.
    double mean = 0;
    for (int64_t e = 0; e < experts; ++e) mean += scores[e] / sum * routed[e];
    std::vector<double> gradient(experts);
    for (int64_t e = 0; e < experts; ++e) {
      gradient[e] = weight * AuxScale(router) * (routed[e] - mean) / sum;
    }
    const std::vector<double> aux = ScoresGrad(scores, gradient, router.score);
    const std::vector<double> softmax = Scores(logits, experts, model::RouterScore::kSoftmax);
    const double z = weight * router.z_loss_coef / static_cast<double>(router.tokens) * 2 *
                     LogSumExp(logits, experts);
    for (int64_t e = 0; e < experts; ++e) {
      operation.outputs[0][r * experts + e] = aux[e] + z * softmax[e];
    }
  }
  return OkStatus();
}

}  // namespace troupe::kernels::reference
