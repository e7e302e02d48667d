// Sorts MoE choices by expert, stably: computes the row of each choice in a buffer sorted by
// expert. A counting sort: count the choices in parts, sum the counts, then place each part after
// the parts before it.
#ifndef TROUPE_KERNELS_CUDA_KERNELS_CHOICE_ORDER_H_
#define TROUPE_KERNELS_CUDA_KERNELS_CHOICE_ORDER_H_

#include <array>
#include <cstdint>

#include "kernels/cuda/device_code/launch.h"

namespace troupe::kernels::cuda {

struct ChoiceOrderArgs {
  const int32_t* chosen;          // i[N]: the expert of each choice
  const int32_t* kept;            // i[N]: negative if a choice is left out; or null
  int32_t* slots;                 // i[N]: rows; -1 for choices without a row
  int32_t* counts;                // i[experts]: number of rows of each expert
  int32_t* before;                // scratch of ChoiceOrderScratchBytes
  int64_t choices;                // N
  int64_t first_expert, experts;  // experts [first_expert, first_expert + experts) get rows
  int64_t capacity;               // maximum rows per expert; 0: unlimited
};

// REQUIRES: fewer than 2^31 choices.
int64_t ChoiceOrderScratchBytes(int64_t choices, int64_t experts);
// The launches, in order. REQUIRES: choices > 0, at most model::kMaxExperts experts.
std::array<KernelLaunch, 3> OrderChoices(const ChoiceOrderArgs& args);

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_KERNELS_CHOICE_ORDER_H_
