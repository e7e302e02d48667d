// The actions of one rank in a step, in order: the plan's schedule ("F0.1") with explicit buffers
// and pipeline traffic. Pure data. ToText prints "R F1.0 b0 S", "L0 F2.0 b1" (input from buffer 0
// of the chunk below, on this rank) or "F0.4 b1 |2" (overlaps the two actions that follow).
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
  // Buffer of chunk_index; held from F to the last piece that needs its saved activations.
  int buffer = 0;
  // If this rank also has the chunk below: that chunk's buffer with this microbatch. F reads its
  // input from it, B and I write the gradient to it, and nothing is sent. Else -1.
  int buffer_below = -1;
  bool receives = false;  // F: the boundary activation; B and I: the gradient of the chunk's output
  bool sends = false;     // F: the chunk's output; B and I: the gradient of its input
  bool first_microbatch = false;  // first of this piece of this chunk in the step
  bool last_microbatch = false;   // B or W: completes the chunk's gradients
  // For the F of an overlapped pair: the number of following actions that are the pair's backward
  // (1 for B, 2 for I and W). Else 0.
  int overlaps = 0;
};

struct ActionList {
  std::vector<RankAction> actions;
  std::vector<int> buffers;  // by chunk index: maximum of microbatches in flight
  bool split_backward = false;
  // Each F posts the receive of its output's gradient. Otherwise, in some schedules of several
  // chunks, a rank would wait for a gradient to be sent from a buffer while the receiver waits for
  // a later action of this rank.
  bool posts_gradient_receives = false;
};

// Makes the actions of a pipe rank from its `schedule`, in order. An overlapped pair ("F0.4|B7.1")
// becomes F and then B, and F records the overlap. `chunks` has the rank's global chunk numbers,
// ascending; `chunk_count` counts the whole model's. F allocates a buffer, B or W releases it. If
// any I and W are apart, every B becomes I and then W, because memory is laid out for only one of
// the two forms.
//
// Returns INVALID_ARGUMENT, which names the action, for an action that does not parse, an unknown
// chunk, a microbatch outside [0, microbatches), a B or I without its F, a W without its I, an F or
// a gradient that precedes that of the neighbouring chunk on this rank, and for an unfinished
// microbatch.
StatusOr<ActionList> MakeActions(const std::vector<std::string>& schedule,
                                 const std::vector<int>& chunks, int chunk_count, int microbatches);

std::string ToText(const RankAction& action);

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_RANK_ACTION_H_
