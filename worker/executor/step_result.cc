#include "worker/executor/step_result.h"

#include <cmath>
#include <limits>

#include "model/program/control_word.h"

namespace troupe {

double MeanLoss(double sum, double weight) {
  return weight == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / weight;
}

double MeanGradientNorm(double sum_of_squares, double weight) {
  return weight == 0 && std::isfinite(sum_of_squares) ? 0 : std::sqrt(sum_of_squares) / weight;
}

void ReadControlWord(std::span<const double> control, const BatchGeometry& batch,
                     StepResult* result) {
  const double weight = control[model::kLaneWeight];
  result->event.set_loss(MeanLoss(control[model::kLaneLoss], weight));
  result->event.set_grad_norm(MeanGradientNorm(control[model::kLaneSumOfSquares], weight));
  result->event.set_tokens(static_cast<int64_t>(control[model::kLaneTokens]));
  const double length = static_cast<double>(batch.sequence_length);
  result->seen_pairs = control[model::kLanePairs] /
                       (static_cast<double>(batch.global_batch_size) * length * length / 2);
  result->routed = static_cast<int64_t>(control[model::kLaneRouted]);
  result->dropped = static_cast<int64_t>(control[model::kLaneDropped]);
  result->stop = control[model::kLaneStop] != 0;
  result->ticket_end = static_cast<int64_t>(control[model::kLaneTicketEnd]);
  result->request_attempt = static_cast<int64_t>(control[model::kLaneRequestAttempt]);
  result->intent_known = control[model::kLaneIntentKnown] != 0;
}

}  // namespace troupe
