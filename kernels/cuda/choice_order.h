// Choices of experts in the order of their experts, of each in their own: the row that each has in a buffer of that order. A
// counting sort: parts of the choices are counted, their counts added up, and each part placed behind those before it.
#ifndef TROUPE_KERNELS_CUDA_CHOICE_ORDER_H_
#define TROUPE_KERNELS_CUDA_CHOICE_ORDER_H_

#include <array>
#include <cstdint>

#include "kernels/cuda/launch.h"

namespace troupe::kernels::cuda {

struct ChoiceOrderArgs {
  const int32_t* chosen;  // i[N]: an expert each
  const int32_t* kept;    // i[N]: below 0 where a choice is left out; or null
  int32_t* slots;         // i[N]: rows; -1 of choices that have none
  int32_t* counts;        // i[experts]: rows of each
  int32_t* before;        // scratch of ChoiceOrderScratchBytes
  int64_t choices;        // N
  int64_t first_expert, experts;  // those that have rows: [first_expert, first_expert + experts)
  int64_t capacity;               // most rows of each; 0: no bound
};

// REQUIRES: fewer than 2^31 choices.
int64_t ChoiceOrderScratchBytes(int64_t choices, int64_t experts);
// In this order. REQUIRES: choices > 0, at most model::kMaxExperts experts.
std::array<KernelLaunch, 3> OrderChoices(const ChoiceOrderArgs& args);

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_CHOICE_ORDER_H_
