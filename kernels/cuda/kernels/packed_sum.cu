// Memory-bound: each thread sums a few adjacent elements and reads each term once.
#include "kernels/cuda/kernels/packed_sum.h"

#include "kernels/cuda/device_code/numbers.h"
#include "kernels/cuda/device_code/shapes.h"

namespace troupe::kernels::cuda {
namespace {

TROUPE_DEVICE int64_t FirstOf(int neighbours) {
  return (int64_t{BlockIndex().x} * BlockThreads() + ThreadIndex()) * neighbours;
}

template <int N>
TROUPE_KERNEL void SumPackedKernel(SumPackedArgs args) {
  const int64_t i = FirstOf(N);
  if (i >= args.count) return;
  auto sum = Pack<float, N>::Load(args.own + i);
  const auto* const others = static_cast<const BFloat16*>(args.others);
  for (int k = 1; k < args.ranks; ++k) {
    const int rank = (args.rank + args.ranks - k) % args.ranks;
    const int64_t place = rank < args.rank ? rank : rank - 1;
    const auto term = Pack<BFloat16, N>::Load(others + place * args.count + i);
    for (int n = 0; n < N; ++n) sum.Set(n, sum[n] + term[n]);
  }
  if (args.sum != nullptr) sum.Store(args.sum + i);
  if (args.packed == nullptr) return;
  Pack<BFloat16, N> packed;
  for (int n = 0; n < N; ++n) packed.Set(n, sum[n]);
  packed.Store(static_cast<BFloat16*>(args.packed) + i);
}

struct UnpackArgs {
  const BFloat16* x;
  float* y;
  int64_t count;
};

template <int N>
TROUPE_KERNEL void UnpackKernel(UnpackArgs args) {
  const int64_t i = FirstOf(N);
  if (i >= args.count) return;
  const auto x = Pack<BFloat16, N>::Load(args.x + i);
  Pack<float, N> y;
  for (int n = 0; n < N; ++n) y.Set(n, x[n]);
  y.Store(args.y + i);
}

}  // namespace

KernelLaunch SumPacked(const SumPackedArgs& args) {
  return Packs(args.count, sizeof(BFloat16), {args.own, args.others, args.sum, args.packed})
             ? MakeLaunch("sum_packed", &SumPackedKernel<4>, ThreadsFor(args.count / 4), args)
             : MakeLaunch("sum_packed", &SumPackedKernel<1>, ThreadsFor(args.count), args);
}

KernelLaunch Unpack(const void* x, float* y, int64_t count) {
  const UnpackArgs args = {static_cast<const BFloat16*>(x), y, count};
  return Packs(count, sizeof(BFloat16), {x, y})
             ? MakeLaunch("unpack", &UnpackKernel<4>, ThreadsFor(count / 4), args)
             : MakeLaunch("unpack", &UnpackKernel<1>, ThreadsFor(count), args);
}

}  // namespace troupe::kernels::cuda
