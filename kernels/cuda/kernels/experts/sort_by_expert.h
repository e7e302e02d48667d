// Sorts MoE assignments by expert, stably: computes the row of each assignment in a buffer sorted
// by expert. A counting sort: count the assignments in parts, sum the counts, then place each part
// after the parts before it.
#ifndef TROUPE_KERNELS_CUDA_KERNELS_EXPERTS_SORT_BY_EXPERT_H_
#define TROUPE_KERNELS_CUDA_KERNELS_EXPERTS_SORT_BY_EXPERT_H_

#include <array>
#include <cstdint>

#include "kernels/cuda/device_code/launch.h"

namespace troupe::kernels::cuda {

struct ExpertSortArgs {
  const int32_t* expert_ids;      // i[N]: the expert of each assignment
  const int32_t* kept;            // i[N]: negative if an assignment is left out; or null
  int32_t* slots;                 // i[N]: rows; -1 for assignments without a row
  int32_t* counts;                // i[experts]: number of rows of each expert
  int32_t* before;                // scratch of ExpertSortScratchBytes
  int64_t assignments;            // N
  int64_t first_expert, experts;  // experts [first_expert, first_expert + experts) get rows
  int64_t capacity;               // maximum rows per expert; 0: unlimited
};

// REQUIRES: fewer than 2^31 assignments.
int64_t ExpertSortScratchBytes(int64_t assignments, int64_t experts);
// The launches, in order. REQUIRES: assignments > 0, at most model::kMaxExperts experts.
std::array<KernelLaunch, 3> SortByExpert(const ExpertSortArgs& args);

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_KERNELS_EXPERTS_SORT_BY_EXPERT_H_
