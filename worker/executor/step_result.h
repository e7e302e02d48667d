// The results of a step, known once all ranks have completed it.
#ifndef TROUPE_WORKER_EXECUTOR_STEP_RESULT_H_
#define TROUPE_WORKER_EXECUTOR_STEP_RESULT_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/backend/delayed_read.h"
#include "plan/validate/batch.h"
#include "troupe/v1/step.pb.h"

namespace troupe {

struct StepResult {
  int64_t step = 0;
  // Equal on all ranks. loss: Σ weight·nll / Σ weight over the global batch, NaN without a target;
  // grad_norm: before clipping; tokens: targets with weight > 0 in the global batch.
  v1::StepEvent event;
  v1::StepFigures figures;  // measured on this rank
  // Query-key pairs seen, as a fraction of those of samples with one document each: below 1 if a
  // document mask hides some.
  double seen_pairs = 1;
  // Seconds from the step's begin to its end, or from the end of the previous step if that was
  // still in flight at the begin.
  double step_seconds = 0;
  // Expert choices in all blocks E, and those beyond a capacity.
  int64_t routed = 0, dropped = 0;
  // On the first rank of each pipe stage: the choices of each expert in the blocks E of that stage.
  std::vector<double> expert_load;
  double receive_wait_seconds = 0;  // time the host waited in pipeline receives
  // The device's stalls in this step; absent if the host computes.
  std::optional<kernels::DeviceStalls> stalls;
  std::string nonfinite;  // if skipped: the tensor that was not finite
  // The agreement of all ranks in this step, on which they act identically
  // (worker/executor/step_order.h).
  bool stop = false;
  int64_t ticket_end = 0;
  int64_t request_attempt = 0;
  bool intent_known = false;
};

// Σ weight·nll / Σ weight. Without a target (Σ weight 0) there is no loss, and it is the NaN
// without a sign: the quotient's sign would depend on the machine.
double MeanLoss(double sum, double weight);

// The norm of the gradient / Σ weight, which is 0 without a target unless a gradient is not finite.
double MeanGradientNorm(double sum_of_squares, double weight);

// Fills in the fields that the reduced control word contains (model/program/control_word.h).
void ReadControlWord(std::span<const double> control, const BatchGeometry& batch,
                     StepResult* result);

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_STEP_RESULT_H_
