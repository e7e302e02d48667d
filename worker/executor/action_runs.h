// The order in which a step runs the operations of a rank's actions: action after action, except
// that the operations of an overlapped pair are interleaved as the program states
// (model/pair_order.h). Pure.
#ifndef TROUPE_WORKER_EXECUTOR_ACTION_RUNS_H_
#define TROUPE_WORKER_EXECUTOR_ACTION_RUNS_H_

#include <vector>

#include "model/program/program.h"
#include "worker/executor/rank_action.h"

namespace troupe {

// Operations [begin, end) of the piece that an action runs.
struct ActionRun {
  int action = 0;  // index into ActionList::actions
  int begin = 0, end = 0;
  bool begins = false;  // first run of its action: the action's inputs are received before it
  bool ends = false;    // last run of its action: the action's outputs are sent after it
};

// Returns the runs of a step. REQUIRES: `list` names chunks of `program`.
std::vector<ActionRun> RunsOf(const ActionList& list, const model::Program& program);

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_ACTION_RUNS_H_
