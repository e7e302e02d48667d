// y[slots[r,j]] = x[r]: one block per row of x.
#include "kernels/cuda/device_code/numbers.h"
#include "kernels/cuda/device_code/shapes.h"
#include "kernels/cuda/kernels/kernels.h"

namespace troupe::kernels::cuda {
namespace {

template <typename T, int N>
TROUPE_KERNEL void PermuteKernel(PermuteArgs args) {
  const int64_t row = BlockIndex().x;
  const int32_t* slots = args.slots + row * args.top_k;
  for (int64_t h = int64_t{ThreadIndex()} * N; h < args.hidden; h += int64_t{BlockThreads()} * N) {
    const auto x = Pack<T, N>::Load(static_cast<const T*>(args.x) + row * args.hidden + h);
    for (int64_t j = 0; j < args.top_k; ++j) {
      if (slots[j] >= 0) x.Store(static_cast<T*>(args.y) + slots[j] * args.hidden + h);
    }
  }
}

template <typename T>
KernelLaunch PermuteOf(const PermuteArgs& args) {
  constexpr int kMany = kPack<T>;
  return Packs(args.hidden, sizeof(T), {args.x, args.y})
             ? MakeLaunch("permute", &PermuteKernel<T, kMany>,
                          BlocksFor(args.rows, args.hidden / kMany), args)
             : MakeLaunch("permute", &PermuteKernel<T, 1>, BlocksFor(args.rows, args.hidden), args);
}

}  // namespace

KernelLaunch Permute(const PermuteArgs& args, bool bfloat16) {
  return bfloat16 ? PermuteOf<BFloat16>(args) : PermuteOf<float>(args);
}

}  // namespace troupe::kernels::cuda
