// The learning rate of a step: a pure function of the schedule and the step.
#ifndef TROUPE_WORKER_EXECUTOR_LEARNING_RATE_H_
#define TROUPE_WORKER_EXECUTOR_LEARNING_RATE_H_

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace troupe {

enum class DecayType { kConstant, kLinear, kCosine, kWsd, kInverseSqrt };

// "constant", "linear", "cosine", "wsd" or "inverse_sqrt"; INVALID_ARGUMENT for anything else.
StatusOr<DecayType> ParseDecayType(std::string_view text);

struct LearningRateSchedule {
  double peak = 0;  // optimizer.lr
  int64_t warmup_steps = 0;
  DecayType decay_type = DecayType::kConstant;
  int64_t decay_steps = 0;   // the step at which linear, cosine and wsd reach their end
  double decay_ratio = 0.1;  // wsd: the share of decay_steps that decays
  double min_factor = 0;     // of peak: where a decay ends
};

// With s = step (from 1) and w = warmup_steps, peak times:
//   s < w          s / w
//   constant       1
//   linear         from 1 at w to min_factor at decay_steps, on a line
//   cosine         likewise, on half a cosine
//   wsd            1 until decay_steps · (1 - decay_ratio) (or w, if later), then a line to
//   min_factor at decay_steps inverse_sqrt   max(min_factor, sqrt(max(w, 1) / s))
// and min_factor after decay_steps for linear, cosine and wsd. REQUIRES: step >= 1.
double LearningRate(const LearningRateSchedule& schedule, int64_t step);

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_LEARNING_RATE_H_
