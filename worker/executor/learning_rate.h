// The learning rate of a step: a pure function of schedule and step.
#ifndef TROUPE_WORKER_EXECUTOR_LEARNING_RATE_H_
#define TROUPE_WORKER_EXECUTOR_LEARNING_RATE_H_

#include <cstdint>

#include "troupe/v1/job.pb.h"

namespace troupe {

struct LearningRateSchedule {
  double peak = 0;  // optimizer.lr
  int64_t warmup_steps = 0;
  v1::DecayType decay_type = v1::DECAY_TYPE_CONSTANT;
  int64_t decay_steps = 0;  // step at which linear, cosine and wsd end
  double decay_ratio = 0;   // wsd: fraction of decay_steps in which the rate decays
  double min_factor = 0;    // lower limit as a fraction of `peak`
};

// With s = step (from 1) and w = warmup_steps, the rate is `peak` times:
//   s < w          s / w
//   constant       1
//   linear         a line from 1 at w to min_factor at decay_steps
//   cosine         half a cosine from 1 at w to min_factor at decay_steps
//   wsd            1 until max(w, decay_steps · (1 - decay_ratio)), then a line to min_factor at
//                  decay_steps
//   inverse_sqrt   max(min_factor, sqrt(max(w, 1) / s))
// After decay_steps it is min_factor for linear, cosine and wsd. REQUIRES: step >= 1.
double LearningRate(const LearningRateSchedule& schedule, int64_t step);

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_LEARNING_RATE_H_
