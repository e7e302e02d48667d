// Runs a schedule on virtual time: proves that it ends (no rank waits for ever), that every action runs once and in an
// order that data allow, and gives its bubble and how many microbatches are alive at once. Pure.
#ifndef TROUPE_PLAN_SCHEDULES_SIMULATOR_H_
#define TROUPE_PLAN_SCHEDULES_SIMULATOR_H_

#include <vector>

#include "plan/schedules/schedule.h"

namespace troupe {

// Of one chunk and one microbatch, in any one unit of time.
struct ActionCosts {
  double forward = 1;
  double input_gradient = 1;
  double weight_gradient = 1;
};

struct SimulationResult {
  double makespan = 0;
  std::vector<double> idle;  // per pipe rank: makespan less its busy time
  double bubble_ratio = 0;   // idle time of all ranks over ranks × makespan
  // Per pipe rank: most (chunk, microbatch) pairs at once between the start of F and the end of B or W.
  std::vector<int> peak_live_activations;
  // Per pipe rank and its chunk: the same for that chunk alone.
  std::vector<std::vector<int>> peak_live_by_chunk;
};

struct SimulateOptions {
  // An overlapped pair is one action: it begins when both of its parts can, and what it makes leaves at its end. Else
  // the forward runs first and sends its output at its own end.
  bool indivisible_pairs = false;
};

// `costs` has one entry a global chunk; transfers take no time. INVALID_ARGUMENT naming the action where one is
// missing, doubled, out of place (on a rank without the chunk; backward before forward), where chunks take their
// microbatches in unlike orders (edges keep them), or where ranks wait for each other for ever.
StatusOr<SimulationResult> Simulate(const Schedule& schedule, const std::vector<ActionCosts>& costs,
                                    const SimulateOptions& options = {});

}  // namespace troupe

#endif  // TROUPE_PLAN_SCHEDULES_SIMULATOR_H_
