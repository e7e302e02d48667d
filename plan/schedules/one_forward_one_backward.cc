#include "plan/schedules/one_forward_one_backward.h"

#include <algorithm>

#include "base/check.h"

namespace troupe {

Schedule OneForwardOneBackward(int stages, int microbatches) {
  TROUPE_CHECK(stages >= 1 && microbatches >= 1);
  Schedule schedule{.name = "1F1B", .microbatches = microbatches};
  for (int rank = 0; rank < stages; ++rank) {
    const int warm_up = std::min(microbatches, stages - 1 - rank);
    std::vector<Action> actions;
    actions.reserve(2 * microbatches);
    for (int m = 0; m < warm_up; ++m) actions.push_back({ActionKind::kForward, rank, m});
    for (int m = warm_up; m < microbatches; ++m) {
      actions.push_back({ActionKind::kForward, rank, m});
      actions.push_back({ActionKind::kBackward, rank, m - warm_up});
    }
    for (int m = microbatches - warm_up; m < microbatches; ++m) {
      actions.push_back({ActionKind::kBackward, rank, m});
    }
    schedule.chunks.push_back({rank});
    schedule.actions.push_back(std::move(actions));
  }
  return schedule;
}

}  // namespace troupe
