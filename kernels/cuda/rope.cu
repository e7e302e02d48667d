// Rotary position embeddings: pair (i, i + D/2) of every query and key head turns by position · frequency(i). A block a
// row, a thread a pair; values are copied where y is not x.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/numbers.h"
#include "kernels/cuda/shapes.h"

namespace troupe::kernels::cuda {
namespace {

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
      const double angle = static_cast<double>(position) * args.frequencies[i];
      cosine = static_cast<float>(cos(angle));
      sine = static_cast<float>(sin(angle));
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
