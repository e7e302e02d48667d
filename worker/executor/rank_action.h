// What one rank does in a step, in order: the plan's schedule ("F0.1") with buffers and pipeline
// traffic made explicit. Pure data, printed by ToText ("R F1.0 b0 S"; "L0 F2.0 b1": from buffer 0
// of the chunk below, on this rank; "F0.4 b1 |2": overlaps the two actions that follow).
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
  // Where the chunk below is this rank's too: the buffer in which that has the microbatch. F takes its input from
  // there, B and I put the gradient there; nothing is sent. Else -1.
  int buffer_below = -1;
  bool receives = false;  // F: the boundary activation; B and I: the gradient of the chunk's output
  bool sends = false;     // F: the chunk's output; B and I: the gradient of its input
  bool first_microbatch = false;  // the first of this piece of this chunk in the step
  bool last_microbatch = false;   // B or W: after it the chunk's gradients are complete
  // F of an overlapped pair: how many of the actions that follow are the pair's backward (B: 1; I
  // and W: 2). Else 0.
  int overlaps = 0;
};

struct ActionList {
  std::vector<RankAction> actions;
  std::vector<int> buffers;  // by chunk index: how many microbatches are alive at once
  bool split_backward = false;
  // An F posts the receive of its output's gradient. Without, a rank waits in some schedules of several chunks for a
  // gradient to leave a buffer, whose receiver waits for a later action of this very rank.
  bool posts_gradient_receives = false;
};

// `schedule`: this pipe rank's actions in order ("F0.4|B7.1", an overlapped pair, becomes F and
// then B, of which F says that it overlaps); `chunks`: its global chunk numbers, ascending;
// `chunk_count`: of the whole model. INVALID_ARGUMENT naming the action for one that does not
// parse, for an unknown chunk, a microbatch out of [0, microbatches), a B or I without its F, a W
// without its I, an F or a gradient before that of the neighbouring chunk on this rank, and for a
// microbatch left unfinished. A buffer is given to the F and comes back with B or W. Where any I
// and W run apart, so does every B, as I and then W: memory is laid out for the one or the other.
StatusOr<ActionList> MakeActions(const std::vector<std::string>& schedule,
                                 const std::vector<int>& chunks, int chunk_count, int microbatches);

std::string ToText(const RankAction& action);

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_RANK_ACTION_H_
