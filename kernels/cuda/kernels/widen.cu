#include "kernels/cuda/kernels/widen.h"

#include "kernels/cuda/device_code/numbers.h"
#include "kernels/cuda/device_code/shapes.h"

namespace troupe::kernels::cuda {
namespace {

template <int N>
TROUPE_KERNEL void WidenKernel(WidenArgs args) {
  const int64_t i = (int64_t{BlockIndex().x} * BlockThreads() + ThreadIndex()) * N;
  if (i >= args.count) return;
  const auto x = Pack<BFloat16, N>::Load(static_cast<const BFloat16*>(args.x) + i);
  Pack<float, N> y;
  for (int k = 0; k < N; ++k) y.Set(k, x[k]);
  y.Store(args.y + i);
}

}  // namespace

KernelLaunch Widen(const WidenArgs& args) {
  return Packs(args.count, sizeof(float), {args.x, args.y})
             ? MakeLaunch("widen", &WidenKernel<4>, ThreadsFor(args.count / 4), args)
             : MakeLaunch("widen", &WidenKernel<1>, ThreadsFor(args.count), args);
}

}  // namespace troupe::kernels::cuda
