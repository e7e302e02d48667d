// Prefix sums by a block or a warp.
#ifndef TROUPE_KERNELS_CUDA_DEVICE_CODE_BLOCK_SCAN_H_
#define TROUPE_KERNELS_CUDA_DEVICE_CODE_BLOCK_SCAN_H_

#include <cstdint>

#include "kernels/cuda/device_code/simt.h"

namespace troupe::kernels::cuda {

// Replaces each value by the sum of the values before it. Called by all threads of a block of
// kThreads, each of which handles an equal part. The values must be visible to all threads before
// the call; the results are visible to all on return. `shared`: i[kThreads] of the block.
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

// The sum of the values of this lane and all lower lanes of the warp.
TROUPE_DEVICE int32_t InclusiveWarpScan(int32_t value) {
  for (int distance = 1; distance < kWarp; distance *= 2) {
    const int32_t before = ShuffleFrom(value, Lane() >= distance ? Lane() - distance : Lane());
    if (Lane() >= distance) value += before;
  }
  return value;
}

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_DEVICE_CODE_BLOCK_SCAN_H_
