// In which order a step runs the operations of a rank's actions: one action after the other, but
// for overlapped pairs where the program interleaves them (model/pair_order.h). Pure.
#ifndef TROUPE_WORKER_EXECUTOR_ACTION_RUNS_H_
#define TROUPE_WORKER_EXECUTOR_ACTION_RUNS_H_

#include <vector>

#include "model/program/program.h"
#include "worker/executor/rank_action.h"

namespace troupe {

// Operations [begin, end) of the piece of an action.
struct ActionRun {
  int action = 0;  // index into ActionList::actions
  int begin = 0, end = 0;
  bool begins = false;  // the first of its action: what the action receives is there before it
  bool ends = false;    // the last of its action: what the action sends goes after it
};

// The runs of a step. REQUIRES: `list` names chunks of `program`.
std::vector<ActionRun> RunsOf(const ActionList& list, const model::Program& program);

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_ACTION_RUNS_H_
