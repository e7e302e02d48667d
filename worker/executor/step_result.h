// The results of a step, known once all ranks have completed it.
#ifndef TROUPE_WORKER_EXECUTOR_STEP_RESULT_H_
#define TROUPE_WORKER_EXECUTOR_STEP_RESULT_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "plan/batch.h"
#include "worker/executor/block_norms.h"

namespace troupe {

// Equal on all ranks except the times and the expert load.
struct StepResult {
  int64_t step = 0;
  double loss = 0;       // Σ weight·nll / Σ weight over the global batch
  double grad_norm = 0;  // before clipping
  double learning_rate = 0;
  int64_t tokens = 0;  // targets with weight > 0 in the global batch
  // Query-key pairs seen, as a fraction of those of samples with one document each: below 1 if a
  // document mask hides some.
  double seen_pairs = 1;
  bool skipped = false;  // not finite, and on_nonfinite = skip_step
  // Seconds from the step's begin to its end, or from the end of the previous step if that was
  // still in flight at the begin.
  double step_seconds = 0;
  double data_wait_seconds = 0;
  // Expert choices in all blocks E, and those beyond a capacity.
  int64_t routed = 0, dropped = 0;
  // On the first rank of each pipe stage: the choices of each expert in the blocks E of that stage.
  std::vector<double> expert_load;
  double receive_wait_seconds = 0;  // time the host waited in pipeline receives
  // The device's stalls in this step; absent if the host computes.
  std::optional<kernels::DeviceStalls> stalls;
  // How often the host waited for its device while the device had no later step queued.
  int64_t host_waits = 0;
  int64_t graph_launches = 0;  // launches on the device; 0 if the host computes
  std::optional<double> validation_loss;
  std::vector<BlockNorm> norms;  // in multiples of norms_interval
  std::string nonfinite;         // if skipped: the tensor that was not finite
  // The agreement of all ranks in this step, on which they act identically
  // (worker/executor/step_order.h).
  bool stop = false;
  int64_t ticket_end = 0;
  int64_t request_attempt = 0;
  bool intent_known = false;
};

// Fills in the fields that the reduced control word contains (model/program/control_word.h).
void TakeControlWord(std::span<const double> control, const BatchGeometry& batch, StepResult* result);

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_STEP_RESULT_H_
