// 1F1B (PipeDream-flush): each rank runs as many forwards ahead as there are ranks after it, then
// alternates. One chunk per rank; it supports every number of microbatches of at least 1. Idle time
// per rank: (P-1)(F+B). Rank r keeps at most min(M, P-r) microbatches live.
#include <algorithm>

#include "base/check.h"
#include "plan/schedules/schedule_record.h"

namespace troupe {
namespace {

std::vector<std::vector<Action>> OneForwardOneBackward(const PipelineShape& shape) {
  const int stages = shape.stages, microbatches = shape.microbatches;
  TROUPE_CHECK(stages >= 1 && microbatches >= 1);
  std::vector<std::vector<Action>> by_rank;
  for (int rank = 0; rank < stages; ++rank) {
    const int warm_up = std::min(microbatches, stages - 1 - rank);
    std::vector<Action>& actions = by_rank.emplace_back();
    actions.reserve(2 * microbatches);
    for (int m = 0; m < warm_up; ++m) actions.push_back({ActionKind::kForward, rank, m});
    for (int m = warm_up; m < microbatches; ++m) {
      actions.push_back({ActionKind::kForward, rank, m});
      actions.push_back({ActionKind::kBackward, rank, m - warm_up});
    }
    for (int m = microbatches - warm_up; m < microbatches; ++m) {
      actions.push_back({ActionKind::kBackward, rank, m});
    }
  }
  return by_rank;
}

int LeastLive(const PipelineShape& shape, int rank) {
  return std::min(shape.microbatches, shape.stages - rank);
}

}  // namespace

constinit const ScheduleRecord k1F1BSchedule = {.name = "1F1B",
                                                .default_chunks_per_stage = 1,
                                                .has_only_default_chunks = true,
                                                .least_live_microbatches = LeastLive,
                                                .actions = OneForwardOneBackward};

}  // namespace troupe
