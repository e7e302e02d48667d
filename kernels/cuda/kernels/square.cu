// y = x², element by element, and its gradient; memory-bound.
#include "kernels/cuda/device_code/numbers.h"
#include "kernels/cuda/device_code/shapes.h"
#include "kernels/cuda/kernels/kernels.h"

namespace troupe::kernels::cuda {
namespace {

// The first of the `pack` elements of this thread.
TROUPE_DEVICE int64_t FirstOfPack(int pack) {
  return (int64_t{BlockIndex().x} * BlockThreads() + ThreadIndex()) * pack;
}

template <typename T, int N>
TROUPE_KERNEL void SquareKernel(SquareArgs args) {
  const int64_t i = FirstOfPack(N);
  if (i >= args.count) return;
  const auto x = Pack<T, N>::Load(static_cast<const T*>(args.x) + i);
  Pack<T, N> y;
  for (int k = 0; k < N; ++k) y.Set(k, x[k] * x[k]);
  y.Store(static_cast<T*>(args.y) + i);
}

template <typename T, int N>
TROUPE_KERNEL void SquareGradKernel(SquareGradArgs args) {
  const int64_t i = FirstOfPack(N);
  if (i >= args.count) return;
  const auto dy = Pack<T, N>::Load(static_cast<const T*>(args.dy) + i);
  const auto x = Pack<T, N>::Load(static_cast<const T*>(args.x) + i);
  Pack<T, N> dx;
  for (int k = 0; k < N; ++k) dx.Set(k, 2.0f * x[k] * dy[k]);
  dx.Store(static_cast<T*>(args.dx) + i);
}

template <typename T>
KernelLaunch SquareOf(const SquareArgs& args) {
  constexpr int kMany = kPack<T>;
  return Packs(args.count, sizeof(T), {args.x, args.y})
             ? MakeLaunch("square", &SquareKernel<T, kMany>, ThreadsFor(args.count / kMany), args)
             : MakeLaunch("square", &SquareKernel<T, 1>, ThreadsFor(args.count), args);
}

template <typename T>
KernelLaunch SquareGradOf(const SquareGradArgs& args) {
  constexpr int kMany = kPack<T>;
  return Packs(args.count, sizeof(T), {args.dy, args.x, args.dx})
             ? MakeLaunch("square_grad", &SquareGradKernel<T, kMany>,
                          ThreadsFor(args.count / kMany), args)
             : MakeLaunch("square_grad", &SquareGradKernel<T, 1>, ThreadsFor(args.count), args);
}

}  // namespace

KernelLaunch Square(const SquareArgs& args, bool bfloat16) {
  return bfloat16 ? SquareOf<BFloat16>(args) : SquareOf<float>(args);
}

KernelLaunch SquareGrad(const SquareGradArgs& args, bool bfloat16) {
  return bfloat16 ? SquareGradOf<BFloat16>(args) : SquareGradOf<float>(args);
}

}  // namespace troupe::kernels::cuda
