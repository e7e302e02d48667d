// Transposes f[samples·T,Q] to f[samples,Q,T]: each thread has one row and iterates over its heads,
// so that writes are coalesced and reads hit the cache.
#include "kernels/cuda/device_code/shapes.h"
#include "kernels/cuda/device_code/simt.h"
#include "kernels/cuda/kernels/kernels.h"

namespace troupe::kernels::cuda {
namespace {

struct LseByHeadsArgs {
  const float* lse;
  float* by_heads;
  int64_t rows, tokens, heads;
};

TROUPE_KERNEL void LseByHeadsKernel(LseByHeadsArgs args) {
  const int64_t row = int64_t{BlockIndex().x} * BlockThreads() + ThreadIndex();
  if (row >= args.rows) return;
  const float* const lse = args.lse + row * args.heads;
  float* const by_heads =
      args.by_heads + row / args.tokens * args.heads * args.tokens + row % args.tokens;
  for (int64_t head = 0; head < args.heads; ++head) by_heads[head * args.tokens] = lse[head];
}

}  // namespace

KernelLaunch LseByHeads(const AttentionRows& rows, const float* lse, float* by_heads) {
  const LseByHeadsArgs args = {lse, by_heads, rows.samples * rows.tokens, rows.tokens,
                               rows.query_heads};
  return MakeLaunch("lse_by_heads", &LseByHeadsKernel, ThreadsFor(args.rows), args);
}

}  // namespace troupe::kernels::cuda
