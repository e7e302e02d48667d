// Eager 1F1B (Zhuang et al. 2023, "On Optimizing the Communication of Model Parallelism"): twice as
// many forwards run ahead as in 1F1B, so that transfers have time to arrive. One chunk per rank; it
// supports every number of microbatches of at least 1. Idle time per rank: (P-1)(F+B). Rank r keeps
// at most min(M, 2(P-1-r) + 1) microbatches live.
#include <algorithm>

#include "plan/schedules/schedule_record.h"

namespace troupe {
namespace {

std::vector<std::vector<Action>> EagerOneForwardOneBackward(const PipelineShape& shape) {
  std::vector<std::vector<Action>> by_rank;
  for (int rank = 0; rank < shape.stages; ++rank) {
    const int warm_up = std::min(shape.microbatches, 2 * (shape.stages - 1 - rank));
    std::vector<Action>& actions = by_rank.emplace_back();
    for (int m = 0; m < shape.microbatches + warm_up; ++m) {
      if (m < shape.microbatches) actions.push_back({ActionKind::kForward, rank, m});
      if (m >= warm_up) actions.push_back({ActionKind::kBackward, rank, m - warm_up});
    }
  }
  return by_rank;
}

}  // namespace

constinit const ScheduleRecord kEager1F1BSchedule = {.name = "Eager1F1B",
                                                     .default_chunks_per_stage = 1,
                                                     .has_only_default_chunks = true,
                                                     .actions = EagerOneForwardOneBackward};

}  // namespace troupe
