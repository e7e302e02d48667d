// Rotary position embeddings: pair (i, i + D/2) of every query and key head turns by position · frequency(i). A block a
// row, a thread a pair; values are copied where y is not x.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/numbers.h"
#include "kernels/cuda/shapes.h"

namespace troupe::kernels::cuda {
namespace {

// Multiples of pi need no local memory for the reduction of large angles; 2^-53 of the angle is lost.
TROUPE_DEVICE void SinCos(double angle, float* sine, float* cosine) {
#ifdef __CUDA_ARCH__
  double s, c;
  sincospi(angle * 0.31830988618379067154, &s, &c);
#else
  const double s = std::sin(angle), c = std::cos(angle);
#endif
  *sine = static_cast<float>(s);
  *cosine = static_cast<float>(c);
}

template <typename T>
TROUPE_KERNEL void RopeKernel(RopeArgs args) {
  const int64_t row = BlockIndex().x, half = args.head_dim / 2;
  const int64_t stride = (args.rotated_heads + args.copied_heads) * args.head_dim;
  const T* x = static_cast<const T*>(args.x) + row * stride;
  T* y = static_cast<T*>(args.y) + row * stride;
  const int64_t position = args.positions[row];
  const bool in_table = position >= 0 && position < args.table_rows;
  const float sign = args.inverse ? -1.0f : 1.0f;
  for (int64_t pair = ThreadIndex(); pair < args.rotated_heads * half; pair += BlockThreads()) {
    const int64_t i = pair % half, at = pair / half * args.head_dim + i;
    float cosine, sine;
    if (in_table) {
      cosine = args.table[position * args.head_dim + i];
      sine = args.table[position * args.head_dim + half + i];
    } else {
      SinCos(static_cast<double>(position) * args.frequencies[i], &sine, &cosine);
    }
    sine *= sign;
    const float first = Widen(x[at]), second = Widen(x[at + half]);
    y[at] = Narrow<T>(first * cosine - second * sine);
    y[at + half] = Narrow<T>(second * cosine + first * sine);
  }
  if (x == y) return;
  for (int64_t at = args.rotated_heads * args.head_dim + ThreadIndex(); at < stride;
       at += BlockThreads()) {
    y[at] = x[at];
  }
}

}  // namespace

KernelLaunch Rope(const RopeArgs& args, bool bfloat16) {
  const LaunchShape shape = BlocksFor(args.rows, args.rotated_heads * args.head_dim / 2);
  return bfloat16 ? MakeLaunch("rope", &RopeKernel<BFloat16>, shape, args)
                  : MakeLaunch("rope", &RopeKernel<float>, shape, args);
}

}  // namespace troupe::kernels::cuda
