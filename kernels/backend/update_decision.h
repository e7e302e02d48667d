// Decides from the control word (model/program/control_word.h) what the optimizer does in a step.
// Host code and kernels share it. Pure.
#ifndef TROUPE_KERNELS_BACKEND_UPDATE_DECISION_H_
#define TROUPE_KERNELS_BACKEND_UPDATE_DECISION_H_

#include <cmath>
#include <cstdint>

#include "kernels/numerics/anywhere.h"
#include "model/program/control_word.h"
#include "model/program/router_attributes.h"

namespace troupe::kernels {

// Records the rank in the non-finite lane, as tag 1 + rank; the largest tag remains.
TROUPE_ANYWHERE inline void MarkNonfinite(int rank, double* control) {
  double& lane = control[model::kLaneNonfinite];
  lane = lane > 1.0 + rank ? lane : 1.0 + rank;
}

// Adds this rank's totals {Σ weight·nll, Σ weight} to the loss and weight lanes.
//
// This and AddSumOfSquares record the rank in the non-finite lane (tag 1 + rank) if an addend is
// not finite.
TROUPE_ANYWHERE inline void AddTotals(int rank, const double* totals, double* control) {
  control[model::kLaneLoss] += totals[0];
  control[model::kLaneWeight] += totals[1];
  if (!std::isfinite(totals[0]) || !std::isfinite(totals[1])) MarkNonfinite(rank, control);
}

// Adds a router's counts, `totals` d[kRouterLanes + experts], to the lanes of dropped and routed
// choices.
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

// Whether the step of this reduced control word has a non-finite result. A step without a target,
// whose sum of weights is 0, has none: its gradient is zero.
TROUPE_ANYWHERE inline bool IsNonfinite(const double* control) {
  return control[model::kLaneNonfinite] != 0.0 ||
         !std::isfinite(control[model::kLaneSumOfSquares]) || !(control[model::kLaneWeight] >= 0.0);
}

// Sets `halted` once a step is not finite and copies it to the control word, so that this and later
// steps apply no update.
TROUPE_ANYWHERE inline void Halt(double* control, double* halted) {
  if (IsNonfinite(control)) *halted = 1.0;
  control[model::kLaneHalted] = *halted;
}

struct UpdateDecision {
  // False if something is not finite or the job has halted; parameters and states then stay
  // unchanged.
  bool apply = false;
  double gradient_scale = 0.0;  // clip factor / sum of weights; 0 without a target
};

// `control` must be reduced over all ranks. A max_norm of 0 disables clipping.
TROUPE_ANYWHERE inline UpdateDecision DecideUpdate(const double* control, double max_norm) {
  // A sum of finite terms may be infinite.
  if (control[model::kLaneNonfinite] != 0.0 || control[model::kLaneHalted] != 0.0 ||
      !std::isfinite(control[model::kLaneSumOfSquares])) {
    return {};
  }
  const double weight = control[model::kLaneWeight];
  if (weight == 0.0) return {true, 0.0};
  const double norm = std::sqrt(control[model::kLaneSumOfSquares]) / weight;
  const double clip = max_norm > 0.0 && max_norm < norm + 1e-6 ? max_norm / (norm + 1e-6) : 1.0;
  return {true, clip / weight};
}

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_BACKEND_UPDATE_DECISION_H_
