// GPipe: all forwards, then all backwards, with one chunk per rank. It supports every number of
// microbatches; all of them are live at once. Idle time per rank: (P-1)(F+B).
#include "base/check.h"
#include "plan/schedules/schedule_record.h"

namespace troupe {
namespace {

Schedule GPipe(const PipelineShape& shape) {
  const int stages = shape.stages, microbatches = shape.microbatches;
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

}  // namespace

constinit const ScheduleRecord kGPipeSchedule = {
    .name = "GPipe", .default_chunks_per_stage = 1, .has_only_default_chunks = true, .make = GPipe};

}  // namespace troupe
