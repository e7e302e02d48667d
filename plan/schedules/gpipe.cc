// GPipe: all forwards, then all backwards, with one chunk per rank. It supports every number of
// microbatches; all of them are live at once. Idle time per rank: (P-1)(F+B).
#include "base/check.h"
#include "plan/schedules/schedule_record.h"

namespace troupe {
namespace {

std::vector<std::vector<Action>> GPipe(const PipelineShape& shape) {
  const int stages = shape.stages, microbatches = shape.microbatches;
  TROUPE_CHECK(stages >= 1 && microbatches >= 1);
  std::vector<std::vector<Action>> by_rank;
  for (int rank = 0; rank < stages; ++rank) {
    std::vector<Action>& actions = by_rank.emplace_back();
    for (const ActionKind kind : {ActionKind::kForward, ActionKind::kBackward}) {
      for (int m = 0; m < microbatches; ++m) actions.push_back({kind, rank, m});
    }
  }
  return by_rank;
}

int AllMicrobatches(const PipelineShape& shape, int /*rank*/) { return shape.microbatches; }

}  // namespace

constinit const ScheduleRecord kGPipeSchedule = {.name = "GPipe",
                                                 .default_chunks_per_stage = 1,
                                                 .has_only_default_chunks = true,
                                                 .least_live_microbatches = AllMicrobatches,
                                                 .actions = GPipe};

}  // namespace troupe
