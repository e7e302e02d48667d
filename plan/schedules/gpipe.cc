#include "plan/schedules/gpipe.h"

#include "base/check.h"

namespace troupe {

Schedule GPipe(int stages, int microbatches) {
  TROUPE_CHECK(stages >= 1 && microbatches >= 1);
  Schedule schedule{.name = "GPipe",
                    .microbatches = microbatches,
                    .chunks = LoopedChunks({.stages = stages}),
                    .actions = {}};
  for (int rank = 0; rank < stages; ++rank) {
    std::vector<Action>& actions = schedule.actions.emplace_back();
    for (const ActionKind kind : {ActionKind::kForward, ActionKind::kBackward}) {
      for (int m = 0; m < microbatches; ++m) actions.push_back({kind, rank, m});
    }
  }
  return schedule;
}

}  // namespace troupe
