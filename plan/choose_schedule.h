// parallelism.pipeline_parallel_schedule: auto. Every schedule that runs the shape is simulated with what the model's own
// chunks cost under it; which is best depends on them (zero-bubble schedules want F ~ I ~ W). Pure.
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

// What a schedule runs, in any one unit of time.
struct ScheduleCosts {
  std::vector<ActionCosts> chunks;  // of one microbatch, by chunk of the model
  double once = 0;                  // of a step, beside all actions
  bool indivisible_pairs = false;   // as of SimulateOptions
};

// An error (too few blocks) keeps the schedule out.
using CostsOfSchedule = std::function<StatusOr<ScheduleCosts>(const Schedule& schedule)>;

struct ScheduleChoice {
  ScheduleKind kind = ScheduleKind::k1F1B;
  PipelineShape shape;
  ScheduleCosts costs;  // its own
  // A line for the schedule that was taken, then one for each other: its bubble and memory, or why it does not run.
  std::vector<std::string> reasons;
};

// The schedule with the shortest step; among those within 1% of it, the one that keeps the least alive; of these, the
// one with the fewest chunks. `chunks_per_stage`: as the user asked, else none. INVALID_ARGUMENT with every reason where
// no schedule runs.
StatusOr<ScheduleChoice> ChooseSchedule(int stages, std::optional<int> chunks_per_stage,
                                        int microbatches, const CostsOfSchedule& costs_of_schedule);

}  // namespace troupe

#endif  // TROUPE_PLAN_CHOOSE_SCHEDULE_H_
