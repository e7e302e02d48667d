// Implements parallelism.pipeline_parallel_schedule: auto. Every schedule that supports the shape
// is simulated with the costs of the model's chunks under it; the best one depends on these costs
// (zero-bubble schedules are best where F ~ I ~ W). Pure.
#ifndef TROUPE_PLAN_COST_CHOOSE_SCHEDULE_H_
#define TROUPE_PLAN_COST_CHOOSE_SCHEDULE_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "plan/schedules/schedules.h"
#include "plan/schedules/simulator.h"

namespace troupe {

// The work that a schedule runs, in any one unit of time.
struct ScheduleCosts {
  std::vector<ActionCosts> chunks;  // costs of one microbatch, by chunk of the model
  double once = 0;                  // per step, in addition to all actions
  bool indivisible_pairs = false;   // as of SimulateOptions
};

// Returns the costs of a schedule. An error (too few blocks) excludes the schedule.
using CostsOfSchedule = std::function<StatusOr<ScheduleCosts>(const Schedule& schedule)>;

struct ScheduleChoice {
  ScheduleKind kind = ScheduleKind::k1F1B;
  PipelineShape shape;
  ScheduleCosts costs;  // the costs under this schedule
  // One line for the chosen schedule, then one for each other schedule: its bubble and memory, or
  // why it cannot run.
  std::vector<std::string> reasons;
};

// A schedule that may be chosen.
struct ScheduleOption {
  ScheduleKind kind = ScheduleKind::k1F1B;
  double seconds_at_least = 0;  // lower bound on its step, in the unit of the costs
};

// All schedules, without bounds.
std::vector<ScheduleOption> EverySchedule();

// A step of at most this many times the shortest counts as equally short.
inline constexpr double kAsShort = 1.01;

// Chooses, of `options`, the schedule with the shortest step; among those that are as short, the
// one with the fewest live activations; among these, the one with the fewest chunks.
// `chunks_per_stage`: the number that the user stated, else none. The reasons leave out the
// schedules that, by their bounds, cannot be chosen. INVALID_ARGUMENT with every schedule's reason
// where none can run.
StatusOr<ScheduleChoice> ChooseSchedule(int stages, std::optional<int> chunks_per_stage,
                                        int microbatches, const CostsOfSchedule& costs_of_schedule,
                                        const std::vector<ScheduleOption>& options);

}  // namespace troupe

#endif  // TROUPE_PLAN_COST_CHOOSE_SCHEDULE_H_
