// A lower bound on the time of a step under any schedule, from the times of its stages or from
// lower bounds of them. Pure.
#ifndef TROUPE_PLAN_SEARCH_STEP_BOUND_H_
#define TROUPE_PLAN_SEARCH_STEP_BOUND_H_

#include <algorithm>
#include <vector>

#include "plan/schedules/simulator.h"

namespace troupe {

class StepBound {
 public:
  StepBound(int microbatches, bool split_backward)
      : microbatches_(microbatches), split_backward_(split_backward) {}

  // Adds the next stage. It begins with its first chunk, which waits for the forward of every chunk
  // before it; where I and W are not split it also ends with that chunk, and every chunk before it
  // waits for that. `chunks`: seconds by chunk of the rank; `outside_schedule`: seconds of a step
  // in addition to all microbatches.
  void Add(const std::vector<ActionCosts>& chunks, double outside_schedule) {
    double busy = 0;
    for (const ActionCosts& chunk : chunks) {
      busy += chunk.forward + chunk.input_gradient + chunk.weight_gradient;
    }
    longest_ = std::max(longest_, waits_ + microbatches_ * busy + outside_schedule);
    const ActionCosts& first = chunks.front();
    waits_ += first.forward;
    if (!split_backward_) waits_ += first.input_gradient + first.weight_gradient;
  }

  double seconds() const { return kRounding * longest_; }

 private:
  // The rounding error of a sum depends on the order of its terms.
  static constexpr double kRounding = 1 - 1e-9;

  const int microbatches_;
  const bool split_backward_;
  double waits_ = 0;
  double longest_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_PLAN_SEARCH_STEP_BOUND_H_
