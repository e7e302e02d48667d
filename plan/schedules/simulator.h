// Runs a schedule on virtual time. It proves that the schedule ends (no deadlock) and that every
// action runs once, in an order that its data dependencies allow; it returns the bubble and the
// number of live microbatches. Pure.
#ifndef TROUPE_PLAN_SCHEDULES_SIMULATOR_H_
#define TROUPE_PLAN_SCHEDULES_SIMULATOR_H_

#include <vector>

#include "plan/schedules/schedule.h"

namespace troupe {

// The costs of one chunk for one microbatch, in any one unit of time.
struct ActionCosts {
  double forward = 1;
  double input_gradient = 1;
  double weight_gradient = 1;
};

// The time of an action, from the start of the step.
struct ActionSpan {
  double begin = 0;
  double end = 0;
};

struct SimulationResult {
  double makespan = 0;
  std::vector<double> idle;  // by pipe rank: makespan minus its busy time
  double bubble_ratio = 0;   // idle time of all ranks over (ranks × makespan)
  // By pipe rank: the largest number of (chunk, microbatch) pairs that are at once between the
  // start of F and the end of B or W.
  std::vector<int> peak_live_activations;
  // By pipe rank and its chunk: the same for that chunk only.
  std::vector<std::vector<int>> peak_live_by_chunk;
  // By pipe rank and its action, if SimulateOptions::spans. Both actions of an indivisible pair
  // have the span of the pair.
  std::vector<std::vector<ActionSpan>> spans;
};

struct SimulateOptions {
  // An overlapped pair is one action: it begins when both of its parts can begin, and its results
  // are sent at its end. Otherwise the forward runs first and its output is sent when the forward
  // ends.
  bool indivisible_pairs = false;
  bool spans = false;  // the result has the times of all actions
};

// `costs` has one entry for each global chunk; transfers take no time. INVALID_ARGUMENT, naming the
// action, where an action is missing, doubled or misplaced (on a rank without the chunk; backward
// before forward), where chunks process their microbatches in different orders (pipeline links keep
// the order), or where ranks deadlock.
StatusOr<SimulationResult> Simulate(const Schedule& schedule, const std::vector<ActionCosts>& costs,
                                    const SimulateOptions& options = {});

}  // namespace troupe

#endif  // TROUPE_PLAN_SCHEDULES_SIMULATOR_H_
