// What the optimizer does in a step, from the control word (model/program/control_word.h), wherever it is read: on the host
// or by a kernel. Pure.
#ifndef TROUPE_KERNELS_UPDATE_DECISION_H_
#define TROUPE_KERNELS_UPDATE_DECISION_H_

#include <cmath>
#include <cstdint>

#include "kernels/anywhere.h"
#include "model/program/control_word.h"
#include "model/program/router_attributes.h"

namespace troupe::kernels {

// The rank's tag into the lane of what is not finite.
TROUPE_ANYWHERE inline void MarkNonfinite(int rank, double* control) {
  double& lane = control[model::kLaneNonfinite];
  lane = lane > 1.0 + rank ? lane : 1.0 + rank;
}

// Adds the totals {Σ weight·nll, Σ weight} of this rank to the loss and weight lanes.
//
// This and AddSumOfSquares put the rank's tag (1 + rank) into the non-finite lane where what they add is not finite.
TROUPE_ANYWHERE inline void AddTotals(int rank, const double* totals, double* control) {
  control[model::kLaneLoss] += totals[0];
  control[model::kLaneWeight] += totals[1];
  if (!std::isfinite(totals[0]) || !std::isfinite(totals[1])) MarkNonfinite(rank, control);
}

// Adds what `totals` d[kRouterLanes + experts] of a router have counted to the lanes of choices of experts.
TROUPE_ANYWHERE inline void AddRouted(const double* totals, int64_t experts, double* control) {
  control[model::kLaneDropped] += totals[model::kRouterDropped];
  for (int64_t e = 0; e < experts; ++e) {
    control[model::kLaneRouted] += totals[model::kRouterLanes + e];
  }
}

// Adds a sum of squares of this rank's gradients to its lane.
TROUPE_ANYWHERE inline void AddSumOfSquares(int rank, double sum_of_squares, double* control) {
  control[model::kLaneSumOfSquares] += sum_of_squares;
  if (!std::isfinite(sum_of_squares)) MarkNonfinite(rank, control);
}

// Whether a step with this word, reduced over all ranks, is not finite.
TROUPE_ANYWHERE inline bool IsNonfinite(const double* control) {
  return control[model::kLaneNonfinite] != 0.0 ||
         !std::isfinite(control[model::kLaneSumOfSquares]) || !(control[model::kLaneWeight] > 0.0);
}

// `halted`: whether this or an earlier step was not finite. Tells the control word, so that nothing is applied.
TROUPE_ANYWHERE inline void Halt(double* control, double* halted) {
  if (IsNonfinite(control)) *halted = 1.0;
  control[model::kLaneHalted] = *halted;
}

struct UpdateDecision {
  // False: something is not finite, or the job has halted; parameters and states stay as they are.
  bool apply = false;
  double gradient_scale = 0.0;  // clip factor over the sum of weights; 0 where that is 0
};

// `control` is reduced over all ranks; max_norm 0: nothing is clipped.
TROUPE_ANYWHERE inline UpdateDecision DecideUpdate(const double* control, double max_norm) {
  if (control[model::kLaneNonfinite] != 0.0 || control[model::kLaneHalted] != 0.0) return {};
  const double weight = control[model::kLaneWeight];
  if (weight == 0.0) return {true, 0.0};
  const double norm = std::sqrt(control[model::kLaneSumOfSquares]) / weight;
  const double clip = max_norm > 0.0 && max_norm < norm + 1e-6 ? max_norm / (norm + 1e-6) : 1.0;
  return {true, clip / weight};
}

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_UPDATE_DECISION_H_
