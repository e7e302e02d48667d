#include "worker/executor/step_result.h"

#include <cmath>

#include "model/program/control_word.h"

namespace troupe {

void ReadControlWord(std::span<const double> control, const BatchGeometry& batch,
                     StepResult* result) {
  const double weight = control[model::kLaneWeight];
  result->event.set_loss(control[model::kLaneLoss] / weight);
  result->event.set_grad_norm(std::sqrt(control[model::kLaneSumOfSquares]) / weight);
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
