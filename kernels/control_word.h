// What all backends do alike with the control word (model/program/control_word.h), on the host.
#ifndef TROUPE_KERNELS_CONTROL_WORD_H_
#define TROUPE_KERNELS_CONTROL_WORD_H_

#include "base/status.h"
#include "collective/communicator.h"

namespace troupe::kernels {

// Adds the totals {Σ weight·nll, Σ weight} of this rank to the loss and weight lanes.
void AddTotals(int rank, const double* totals, double* control);

// Adds a sum of squares of this rank's gradients to its lane.
//
// Both put the rank's tag (1 + rank) into the non-finite lane where what they add is not finite.
void AddSumOfSquares(int rank, double sum_of_squares, double* control);

// Reduces `control` over all ranks, each lane in its own way. A null communicator is a group of
// one.
Status ReduceControlWord(Communicator* communicator, double* control);

// What the optimizer does in this step, from the reduced control word.
struct UpdateDecision {
  bool apply = false;  // false: something is not finite; parameters and states stay as they are
  double gradient_scale = 0.0;  // clip factor over the sum of weights; 0 where that is 0
};
UpdateDecision DecideUpdate(const double* control, double max_norm);

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_CONTROL_WORD_H_
