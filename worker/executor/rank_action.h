// What one rank does in a step, in order: the plan's schedule ("F0.1") with buffers and pipeline
// traffic made explicit. Pure data, printed by ToText ("R F1.0 b0 S").
#ifndef TROUPE_WORKER_EXECUTOR_RANK_ACTION_H_
#define TROUPE_WORKER_EXECUTOR_RANK_ACTION_H_

#include <string>
#include <vector>

#include "base/status.h"
#include "model/program/program.h"

namespace troupe {

struct RankAction {
  model::Piece piece =
      model::Piece::kForward;  // kForward, kBackward, kInputGradient or kWeightGradient
  int chunk = 0;               // global chunk number
  int chunk_index = 0;         // among this rank's chunks
  int microbatch = 0;
  int buffer = 0;         // of chunk_index; held from F to the last piece that needs what F saved
  bool receives = false;  // F: the boundary activation; B and I: the gradient of the chunk's output
  bool sends = false;     // F: the chunk's output; B and I: the gradient of its input
  bool first_microbatch = false;  // the first of this piece of this chunk in the step
};

struct ActionList {
  std::vector<RankAction> actions;
  std::vector<int> buffers;  // by chunk index: how many microbatches are alive at once
  bool split_backward = false;
};

// `schedule`: this pipe rank's actions in order; `chunks`: its global chunk numbers, ascending;
// `chunk_count`: of the whole model. INVALID_ARGUMENT naming the action for one that does not
// parse, for an unknown chunk, a microbatch out of [0, microbatches), a B or I without its F, a W
// without its I, and for a microbatch left unfinished. A buffer is given to the F and comes back
// with B or W.
StatusOr<ActionList> MakeActions(const std::vector<std::string>& schedule,
                                 const std::vector<int>& chunks, int chunk_count, int microbatches);

std::string ToText(const RankAction& action);

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_RANK_ACTION_H_
