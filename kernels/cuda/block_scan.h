// Sums over the values before each, by a block.
#ifndef TROUPE_KERNELS_CUDA_BLOCK_SCAN_H_
#define TROUPE_KERNELS_CUDA_BLOCK_SCAN_H_

#include <cstdint>

#include "kernels/cuda/simt.h"

namespace troupe::kernels::cuda {

// In the place of each of the values the sum of those before it, by a block of kThreads threads that have equal parts of
// them. All of them have it on return; before, all of them see the values. `shared`: i[kThreads] of the block.
template <int kThreads>
TROUPE_DEVICE void ExclusiveScan(int32_t* values, int64_t count, int32_t* shared) {
  const int own = static_cast<int>(ThreadIndex());
  const int64_t part = (count + kThreads - 1) / kThreads;
  const int64_t begin = own * part;
  const int64_t end = begin + part < count ? begin + part : count;
  int32_t sum = 0;
  for (int64_t i = begin; i < end; ++i) sum += values[i];
  shared[own] = sum;
  for (int distance = 1; distance < kThreads; distance *= 2) {
    SyncBlock();
    const int32_t before = own >= distance ? shared[own - distance] : 0;
    SyncBlock();
    shared[own] += before;
  }
  sum = shared[own] - sum;
  for (int64_t i = begin; i < end; ++i) {
    const int32_t value = values[i];
    values[i] = sum;
    sum += value;
  }
  SyncBlock();
}

// The sum of the values of this and of all lower lanes of a warp.
TROUPE_DEVICE int32_t InclusiveWarpScan(int32_t value) {
  for (int distance = 1; distance < kWarp; distance *= 2) {
    const int32_t before = ShuffleFrom(value, Lane() >= distance ? Lane() - distance : Lane());
    if (Lane() >= distance) value += before;
  }
  return value;
}

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_BLOCK_SCAN_H_
