// parallelism.pipeline_parallel_schedule: auto. Every schedule that runs the shape is simulated with the costs of the
// model's own chunks; which is best depends on them (zero-bubble schedules want F ~ I ~ W). Pure.
#ifndef TROUPE_PLAN_CHOOSE_SCHEDULE_H_
#define TROUPE_PLAN_CHOOSE_SCHEDULE_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "plan/schedules/schedules.h"
#include "plan/schedules/simulator.h"

namespace troupe {

// F, I and W of one microbatch of each chunk when the model is cut in `chunks`. An error (too few blocks) keeps
// schedules of so many chunks out.
using CostsOfChunks = std::function<StatusOr<std::vector<ActionCosts>>(int chunks)>;

struct ScheduleChoice {
  ScheduleKind kind = ScheduleKind::k1F1B;
  PipelineShape shape;
  // A line for the schedule that was taken, then one for each other: its bubble and memory, or why it does not run.
  std::vector<std::string> reasons;
};

// The schedule with the shortest step; among those within 1% of it, the one that keeps the least alive; of these, the
// one with the fewest chunks. `chunks_per_stage`: as the user asked, else none. INVALID_ARGUMENT with every reason where
// no schedule runs.
StatusOr<ScheduleChoice> ChooseSchedule(int stages, std::optional<int> chunks_per_stage,
                                        int microbatches, const CostsOfChunks& costs_of_chunks);

}  // namespace troupe

#endif  // TROUPE_PLAN_CHOOSE_SCHEDULE_H_
