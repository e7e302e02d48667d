#include "worker/executor/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace troupe {
namespace {

// The fraction of the way from `begin` to `end` at `step`, in [0, 1].
double Progress(double step, double begin, double end) {
  if (end <= begin) return step <= begin ? 0.0 : 1.0;
  return std::clamp((step - begin) / (end - begin), 0.0, 1.0);
}

}  // namespace

StatusOr<DecayType> ParseDecayType(std::string_view text) {
  if (text == "constant") return DecayType::kConstant;
  if (text == "linear") return DecayType::kLinear;
  if (text == "cosine") return DecayType::kCosine;
  if (text == "wsd") return DecayType::kWsd;
  if (text == "inverse_sqrt") return DecayType::kInverseSqrt;
  return InvalidArgument(
      "lr_schedule.decay_type: \"{}\" is none of constant, linear, cosine, wsd, inverse_sqrt",
      text);
}

double LearningRate(const LearningRateSchedule& schedule, int64_t step) {
  TROUPE_CHECK(step >= 1, "steps count from 1");
  const double s = static_cast<double>(step);
  const double warmup = static_cast<double>(schedule.warmup_steps);
  if (s < warmup) return schedule.peak * (s / warmup);
  const double end = static_cast<double>(schedule.decay_steps);
  const double fall = 1.0 - schedule.min_factor;
  switch (schedule.decay_type) {
    case DecayType::kConstant:
      return schedule.peak;
    case DecayType::kLinear:
      return schedule.peak * (1.0 - fall * Progress(s, warmup, end));
    case DecayType::kCosine:
      return schedule.peak *
             (schedule.min_factor +
              fall * 0.5 * (1.0 + std::cos(std::numbers::pi * Progress(s, warmup, end))));
    case DecayType::kWsd: {
      const double begin = std::max(warmup, end * (1.0 - schedule.decay_ratio));
      return schedule.peak * (1.0 - fall * Progress(s, begin, end));
    }
    case DecayType::kInverseSqrt:
      return schedule.peak * std::max(schedule.min_factor, std::sqrt(std::max(warmup, 1.0) / s));
  }
  return schedule.peak;
}

}  // namespace troupe
