// y = x², element by element, and its gradient.
#include "kernels/cpu/level_target.h"

namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE {

template <typename T>
void Square(const SquareArgs& args, int thread, int threads) {
  const Part part = PartOf(args.count, thread, threads, 64);
  const T* from = static_cast<const T*>(args.x);
  T* y = static_cast<T*>(args.y);
  for (int64_t i = part.begin; i < part.end; i += kLanes) {
    const int64_t count = part.end - i;
    const F32 x = LoadUpTo(from + i, count);
    StoreUpTo(y + i, count, x * x);
  }
}

template <typename T>
void SquareGrad(const SquareGradArgs& args, int thread, int threads) {
  const Part part = PartOf(args.count, thread, threads, 64);
  const T* dy = static_cast<const T*>(args.dy);
  const T* x = static_cast<const T*>(args.x);
  T* dx = static_cast<T*>(args.dx);
  for (int64_t i = part.begin; i < part.end; i += kLanes) {
    const int64_t count = part.end - i;
    StoreUpTo(dx + i, count, 2.0f * LoadUpTo(x + i, count) * LoadUpTo(dy + i, count));
  }
}

template void Square<float>(const SquareArgs&, int, int);
template void Square<BFloat16>(const SquareArgs&, int, int);
template void SquareGrad<float>(const SquareGradArgs&, int, int);
template void SquareGrad<BFloat16>(const SquareGradArgs&, int, int);

}  // namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE
