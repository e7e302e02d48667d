// Our CUDA kernels: each function turns the arguments of an operation (kernels/backend/arguments.h)
// into a launch for a device. There is one file per operation, with its name. Where elements have
// the compute dtype, `bfloat16` states which one it is. Every kernel gives the same bits in every
// run. REQUIRES of all: the device can access the addresses; arguments without rows are not
// launched.
#ifndef TROUPE_KERNELS_CUDA_KERNELS_KERNELS_H_
#define TROUPE_KERNELS_CUDA_KERNELS_KERNELS_H_

#include <array>
#include <cstdint>

#include "kernels/backend/arguments.h"
#include "kernels/cuda/device_code/launch.h"

namespace troupe::kernels::cuda {

// The kernels of the kinds that op_kinds.def lists as TYPED or PLAIN, then those that
// Preparation::MakeKind of other kinds uses.
#define TROUPE_CUDA_TYPED(Kind, name) KernelLaunch Kind(const Kind##Args& args, bool bfloat16);
#define TROUPE_CUDA_PLAIN(Kind, name) KernelLaunch Kind(const Kind##Args& args);
#include "model/program/op_kinds.def"

KernelLaunch Cast(const CastArgs& args);

// The first four launches, in order, list the rows of every id in `scratch`; the last adds them up.
// REQUIRES: fewer than 2^31 rows.
int64_t EmbeddingGradScratchBytes(int64_t rows, int64_t vocabulary);
std::array<KernelLaunch, 4> ListEmbeddingRows(const EmbeddingGradArgs& args, void* scratch);
KernelLaunch EmbeddingGrad(const EmbeddingGradArgs& args, void* scratch, bool bfloat16);

// The first writes partial sums of dw to `partial`, f[RmsNormGradBlocks(rows, H), H]; the second
// adds them up.
int64_t RmsNormGradBlocks(int64_t rows, int64_t hidden);
KernelLaunch RmsNormGrad(const RmsNormGradArgs& args, bool bfloat16);
KernelLaunch RmsNormGradFinish(const RmsNormGradArgs& args);

KernelLaunch Rope(const RopeArgs& args, bool bfloat16);

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

// Our own matmuls; the second reads its counts on the device. REQUIRES: fewer than 2^31 rows.
KernelLaunch Matmul(const MatmulArgs& args, bool bfloat16);
KernelLaunch GroupedMatmul(const MatmulArgs& args, bool bfloat16);

// Where several launches are returned, here and below, they run in order. The size of the scratch
// is given by the function of the corresponding name.
int64_t RouterLogitsGradWeightScratchBytes(const RouterLogitsGradWeightArgs& args);
std::array<KernelLaunch, 2> RouterLogitsGradWeight(const RouterLogitsGradWeightArgs& args,
                                                   void* scratch, bool bfloat16);

int64_t RouterTopKScratchBytes(const RouterTopKArgs& args);
std::array<KernelLaunch, 4> RouterTopK(const RouterTopKArgs& args, void* scratch);
int64_t RouterLoadScratchBytes(const RouterLoadArgs& args);
std::array<KernelLaunch, 2> RouterLoad(const RouterLoadArgs& args, void* scratch);
int64_t RouterSlotsScratchBytes(const RouterSlotsArgs& args);
std::array<KernelLaunch, 3> RouterSlots(const RouterSlotsArgs& args, void* scratch);
int64_t RouterLossScratchBytes(int64_t rows);
std::array<KernelLaunch, 2> RouterLoss(const RouterLossArgs& args, void* scratch);

KernelLaunch CopyRoutedRows(const CopyRoutedRowsArgs& args);

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_KERNELS_KERNELS_H_
