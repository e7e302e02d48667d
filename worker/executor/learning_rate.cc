#include "worker/executor/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace troupe {
namespace {

// The fraction of the way from `begin` to `end` at `step`, in [0, 1].
double DecayProgress(double step, double begin, double end) {
  if (end <= begin) return step <= begin ? 0.0 : 1.0;
  return std::clamp((step - begin) / (end - begin), 0.0, 1.0);
}

}  // namespace

double LearningRate(const LearningRateSchedule& schedule, int64_t step) {
  TROUPE_CHECK(step >= 1, "steps count from 1");
  const double s = static_cast<double>(step);
  const double warmup = static_cast<double>(schedule.warmup_steps);
  if (s < warmup) return schedule.peak * (s / warmup);
  const double end = static_cast<double>(schedule.decay_steps);
  const double fall = 1.0 - schedule.min_factor;
  switch (schedule.decay_type) {
    case v1::DECAY_TYPE_CONSTANT:
      return schedule.peak;
    case v1::DECAY_TYPE_LINEAR:
      return schedule.peak * (1.0 - fall * DecayProgress(s, warmup, end));
    case v1::DECAY_TYPE_COSINE:
      return schedule.peak *
             (schedule.min_factor +
              fall * 0.5 * (1.0 + std::cos(std::numbers::pi * DecayProgress(s, warmup, end))));
    case v1::DECAY_TYPE_WSD: {
      const double begin = std::max(warmup, end * (1.0 - schedule.decay_ratio));
      return schedule.peak * (1.0 - fall * DecayProgress(s, begin, end));
    }
    case v1::DECAY_TYPE_INVERSE_SQRT:
      return schedule.peak * std::max(schedule.min_factor, std::sqrt(std::max(warmup, 1.0) / s));
    default:  // protobuf's own values
      break;
  }
  return schedule.peak;
}

}  // namespace troupe
