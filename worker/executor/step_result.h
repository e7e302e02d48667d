// What is known of a step once all ranks have done it.
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

// Equal on all ranks but the times and the load of experts.
struct StepResult {
  int64_t step = 0;
  double loss = 0;       // Σ weight·nll / Σ weight over the global batch
  double grad_norm = 0;  // before clipping
  double learning_rate = 0;
  int64_t tokens = 0;    // targets that count, of the global batch
  // Query-key pairs seen over those of samples that are one document each: below 1 where a document
  // mask hides some.
  double seen_pairs = 1;
  bool skipped = false;  // not finite and on_nonfinite = skip_step
  // From its begin, or from the end of the step before where that was still on its way, to its end.
  double step_seconds = 0;
  double data_wait_seconds = 0;
  // Choices of experts in all blocks E, and those beyond a capacity.
  int64_t routed = 0, dropped = 0;
  // On the first rank of each pipe stage: choices of each expert in the blocks E of that stage.
  std::vector<double> expert_load;
  double receive_wait_seconds = 0;  // of the host, in pipeline receives
  // The device's stalls in this step; absent where the host computes.
  std::optional<kernels::DeviceStalls> stalls;
  // How often the host has waited for its device while that had no later step to go on with.
  int64_t host_waits = 0;
  int64_t graph_launches = 0;  // of the device; 0 where the host computes
  std::optional<double> validation_loss;
  std::vector<BlockNorm> norms;  // in steps of norms_interval
  std::string nonfinite;         // of a skipped step: what was not finite
  // What all ranks knew together in this step: they act on it alike (worker/executor/step_order.h).
  bool stop = false;
  int64_t ticket_end = 0;
  int64_t request_attempt = 0;
  bool intent_known = false;
};

// Fills in what the reduced control word tells (model/program/control_word.h).
void TakeControlWord(std::span<const double> control, const BatchGeometry& batch, StepResult* result);

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_STEP_RESULT_H_
