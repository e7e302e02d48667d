// Attention for heads wider than the blocks' tiles: one warp per query (or per key of a gradient)
// of every head, in plain float32. Correct for every head dim, but slow because queries share no
// data.
#ifndef TROUPE_KERNELS_CUDA_KERNELS_ATTENTION_WIDE_H_
#define TROUPE_KERNELS_CUDA_KERNELS_ATTENTION_WIDE_H_

#include "kernels/backend/arguments.h"
#include "kernels/cuda/device_code/launch.h"
#include "kernels/cuda/kernels/attention_launch.h"

namespace troupe::kernels::cuda {

// T: float or BFloat16. REQUIRES: head_dim is at most 29,056, so that two float32 rows fit into
// shared memory.
template <typename T>
KernelLaunch WideAttention(const AttentionLaunch<AttentionArgs>& launch);
template <typename T>
KernelLaunch WideAttentionQueryGrad(const AttentionLaunch<AttentionGradArgs>& launch);
template <typename T>
KernelLaunch WideAttentionKeyGrad(const AttentionLaunch<AttentionGradArgs>& launch);

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_KERNELS_ATTENTION_WIDE_H_
