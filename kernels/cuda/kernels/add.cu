// Element-wise sums and conversions; memory-bound.
#include "kernels/cuda/device_code/numbers.h"
#include "kernels/cuda/device_code/shapes.h"
#include "kernels/cuda/kernels/kernels.h"

namespace troupe::kernels::cuda {
namespace {

TROUPE_DEVICE int64_t FirstElement(int pack) {
  return (int64_t{BlockIndex().x} * BlockThreads() + ThreadIndex()) * pack;
}

template <typename T, int N>
TROUPE_KERNEL void AddKernel(AddArgs args) {
  const int64_t i = FirstElement(N);
  if (i >= args.count) return;
  const auto a = Pack<T, N>::Load(static_cast<const T*>(args.a) + i);
  const auto b = Pack<T, N>::Load(static_cast<const T*>(args.b) + i);
  Pack<T, N> y;
  for (int k = 0; k < N; ++k) y.Set(k, a[k] + b[k]);
  y.Store(static_cast<T*>(args.y) + i);
}

template <int N>
TROUPE_KERNEL void AccumulateKernel(AccumulateArgs args) {
  const int64_t i = FirstElement(N);
  if (i >= args.count) return;
  auto x = Pack<float, N>::Load(args.x + i);
  if (args.accumulate) {
    const auto y = Pack<float, N>::Load(args.y + i);
    for (int k = 0; k < N; ++k) x.Set(k, y[k] + x[k]);
  }
  x.Store(args.y + i);
}

template <int N>
TROUPE_KERNEL void CastKernel(CastArgs args) {
  const int64_t i = FirstElement(N);
  if (i >= args.count) return;
  const auto x = Pack<float, N>::Load(args.x + i);
  Pack<BFloat16, N> y;
  for (int k = 0; k < N; ++k) y.Set(k, x[k]);
  y.Store(static_cast<BFloat16*>(args.y) + i);
}

template <typename T>
KernelLaunch AddOf(const AddArgs& args) {
  constexpr int kMany = kPack<T>;
  return Packs(args.count, sizeof(T), {args.a, args.b, args.y})
             ? MakeLaunch("add", &AddKernel<T, kMany>, ThreadsFor(args.count / kMany), args)
             : MakeLaunch("add", &AddKernel<T, 1>, ThreadsFor(args.count), args);
}

}  // namespace

KernelLaunch Add(const AddArgs& args, bool bfloat16) {
  return bfloat16 ? AddOf<BFloat16>(args) : AddOf<float>(args);
}

KernelLaunch Accumulate(const AccumulateArgs& args) {
  return Packs(args.count, sizeof(float), {args.x, args.y})
             ? MakeLaunch("accumulate", &AccumulateKernel<4>, ThreadsFor(args.count / 4), args)
             : MakeLaunch("accumulate", &AccumulateKernel<1>, ThreadsFor(args.count), args);
}

KernelLaunch Cast(const CastArgs& args) {
  return Packs(args.count, sizeof(float), {args.x, args.y})
             ? MakeLaunch("cast", &CastKernel<4>, ThreadsFor(args.count / 4), args)
             : MakeLaunch("cast", &CastKernel<1>, ThreadsFor(args.count), args);
}

}  // namespace troupe::kernels::cuda
