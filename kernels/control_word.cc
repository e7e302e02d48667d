#include "kernels/control_word.h"

#include <algorithm>
#include <cmath>

#include "model/program/control_word.h"

namespace troupe::kernels {
namespace {

void MarkNonfinite(int rank, double* control) {
  control[model::kLaneNonfinite] = std::max(control[model::kLaneNonfinite], 1.0 + rank);
}

// One element of the reduction is a whole control word, so that no algorithm can cut it between its
// lanes.
void CombineControlWords(const void*, void* accumulator, const void* other, size_t count) {
  double* a = static_cast<double*>(accumulator);
  const double* b = static_cast<const double*>(other);
  for (size_t i = 0; i < count; ++i, a += model::kControlLanes, b += model::kControlLanes) {
    for (int lane = 0; lane < model::kControlLanes; ++lane) {
      if (lane <= model::kLastSum) {
        a[lane] += b[lane];
      } else if (lane <= model::kLastMax) {
        a[lane] = std::max(a[lane], b[lane]);
      } else {
        a[lane] = std::min(a[lane], b[lane]);
      }
    }
  }
}

}  // namespace

void AddTotals(int rank, const double* totals, double* control) {
  control[model::kLaneLoss] += totals[0];
  control[model::kLaneWeight] += totals[1];
  if (!std::isfinite(totals[0]) || !std::isfinite(totals[1])) MarkNonfinite(rank, control);
}

void AddSumOfSquares(int rank, double sum_of_squares, double* control) {
  control[model::kLaneSumOfSquares] += sum_of_squares;
  if (!std::isfinite(sum_of_squares)) MarkNonfinite(rank, control);
}

Status ReduceControlWord(Communicator* communicator, double* control) {
  if (communicator == nullptr) return OkStatus();
  const Reduction reduction{&CombineControlWords, nullptr, model::kControlLanes * sizeof(double),
                            "control_word"};
  return communicator->AllReduce(control, 1, reduction, Purpose::kControl);
}

UpdateDecision DecideUpdate(const double* control, double max_norm) {
  if (control[model::kLaneNonfinite] != 0.0) return {};
  const double weight = control[model::kLaneWeight];
  if (weight == 0.0) return {true, 0.0};
  const double norm = std::sqrt(control[model::kLaneSumOfSquares]) / weight;
  const double clip = max_norm > 0.0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0;
  return {true, clip / weight};
}

}  // namespace troupe::kernels
