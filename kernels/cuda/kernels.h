// Our CUDA kernels: each function turns the arguments of an operation (kernels/arguments.h) into a
// launch for a device. There is one file per operation, with its name. Where elements have the
// compute dtype, `bfloat16` says which one it is. Every kernel gives the same bits in every run.
// REQUIRES of all: the device can access the addresses; arguments without rows are not launched.
#ifndef TROUPE_KERNELS_CUDA_KERNELS_H_
#define TROUPE_KERNELS_CUDA_KERNELS_H_

#include <array>
#include <cstdint>

#include "kernels/arguments.h"
#include "kernels/cuda/launch.h"

namespace troupe::kernels::cuda {

KernelLaunch Add(const AddArgs& args, bool bfloat16);
KernelLaunch Accumulate(const AccumulateArgs& args);
KernelLaunch Cast(const CastArgs& args);

KernelLaunch Embedding(const EmbeddingArgs& args, bool bfloat16);
// The first four launches, in order, list the rows of every id in `scratch`; the last adds them up.
// REQUIRES: fewer than 2^31 rows.
int64_t EmbeddingGradScratchBytes(int64_t rows, int64_t vocabulary);
std::array<KernelLaunch, 4> ListEmbeddingRows(const EmbeddingGradArgs& args, void* scratch);
KernelLaunch EmbeddingGrad(const EmbeddingGradArgs& args, void* scratch, bool bfloat16);

KernelLaunch RmsNorm(const RmsNormArgs& args, bool bfloat16);
// The first writes partial sums of dw to `partial`, f[RmsNormGradBlocks(rows, H), H]; the second
// adds them up.
int64_t RmsNormGradBlocks(int64_t rows, int64_t hidden);
KernelLaunch RmsNormGrad(const RmsNormGradArgs& args, bool bfloat16);
KernelLaunch RmsNormGradFinish(const RmsNormGradArgs& args);

KernelLaunch Rope(const RopeArgs& args, bool bfloat16);
KernelLaunch Dropout(const DropoutArgs& args, bool bfloat16);
KernelLaunch SplitHeads(const SplitHeadsArgs& args);

// Ignores the scratch in the arguments. REQUIRES: head_dim is at most 29,056.
KernelLaunch Attention(const AttentionArgs& args, bool bfloat16);
// The first writes do · o of every query and head to `scratch`; from it the second computes dq, the
// third dk and dv.
int64_t AttentionGradScratchBytes(const AttentionRows& rows);
KernelLaunch AttentionDelta(const AttentionGradArgs& args, void* scratch, bool bfloat16);
KernelLaunch AttentionQueryGrad(const AttentionGradArgs& args, void* scratch, bool bfloat16);
KernelLaunch AttentionKeyGrad(const AttentionGradArgs& args, void* scratch, bool bfloat16);
// Transposes lse of whole samples, f[R,Q], to `by_heads`, f[samples,Q,T].
KernelLaunch LseByHeads(const AttentionRows& rows, const float* lse, float* by_heads);

KernelLaunch SwiGlu(const SwiGluArgs& args, bool bfloat16);
KernelLaunch SwiGluGrad(const SwiGluGradArgs& args, bool bfloat16);

KernelLaunch SoftmaxStats(const SoftmaxStatsArgs& args, bool bfloat16);
KernelLaunch SoftmaxStatsGrad(const SoftmaxStatsGradArgs& args, bool bfloat16);
KernelLaunch SoftmaxStatsAndGrad(const SoftmaxStatsAndGradArgs& args, bool bfloat16);
KernelLaunch SoftmaxRescale(const SoftmaxRescaleArgs& args);
KernelLaunch CrossEntropy(const CrossEntropyArgs& args);
KernelLaunch CrossEntropyGrad(const CrossEntropyGradArgs& args);

// Our own matmuls; the second reads its counts on the device. REQUIRES: fewer than 2^31 rows.
KernelLaunch Matmul(const ProductArgs& args, bool bfloat16);
KernelLaunch GroupedMatmul(const ProductArgs& args, bool bfloat16);

KernelLaunch RouterLogits(const RouterLogitsArgs& args, bool bfloat16);
KernelLaunch RouterLogitsGradInput(const RouterLogitsGradInputArgs& args, bool bfloat16);
// Where several launches are returned, here and below, they run in order. The size of the scratch
// is given by the function of the corresponding name.
int64_t RouterLogitsGradWeightScratchBytes(const RouterLogitsGradWeightArgs& args);
std::array<KernelLaunch, 2> RouterLogitsGradWeight(const RouterLogitsGradWeightArgs& args, void* scratch, bool bfloat16);

int64_t RouterTopKScratchBytes(const RouterTopKArgs& args);
std::array<KernelLaunch, 4> RouterTopK(const RouterTopKArgs& args, void* scratch);
KernelLaunch RouterTopKGrad(const RouterTopKGradArgs& args);
int64_t RouterLoadScratchBytes(const RouterLoadArgs& args);
std::array<KernelLaunch, 2> RouterLoad(const RouterLoadArgs& args, void* scratch);
int64_t RouterSlotsScratchBytes(const RouterSlotsArgs& args);
std::array<KernelLaunch, 3> RouterSlots(const RouterSlotsArgs& args, void* scratch);
int64_t RouterLossScratchBytes(int64_t rows);
std::array<KernelLaunch, 2> RouterLoss(const RouterLossArgs& args, void* scratch);
KernelLaunch RouterLossGrad(const RouterLossGradArgs& args);
KernelLaunch RouterBias(const RouterBiasArgs& args);

KernelLaunch Permute(const PermuteArgs& args, bool bfloat16);
KernelLaunch Combine(const CombineArgs& args, bool bfloat16);
KernelLaunch CombineGrad(const CombineGradArgs& args, bool bfloat16);
KernelLaunch CopyRoutedRows(const CopyRoutedRowsArgs& args);

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_KERNELS_H_
