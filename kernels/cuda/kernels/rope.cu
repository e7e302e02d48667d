// Rotary position embeddings: rotates pair (i, i + D/2) of every query and key head by position ·
// frequency(i). One block per row, sixteen bytes of pairs per thread if the head dim allows it.
// Values are copied unless y is x.
#include "kernels/cuda/device_code/numbers.h"
#include "kernels/cuda/device_code/shapes.h"
#include "kernels/cuda/kernels/kernels.h"

namespace troupe::kernels::cuda {
namespace {

// Computes in multiples of pi, which needs no local memory for the reduction of large angles; the
// relative error of the angle is 2^-53.
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

// Processes N adjacent pairs at a time; their cosines and sines are adjacent in the table too.
template <typename T, int N>
TROUPE_KERNEL void RopeKernel(RopeArgs args) {
  const int64_t row = BlockIndex().x, half = args.head_dim / 2;
  const int64_t stride = (args.rotated_heads + args.copied_heads) * args.head_dim;
  const T* x = static_cast<const T*>(args.x) + row * stride;
  T* y = static_cast<T*>(args.y) + row * stride;
  const int64_t position = args.positions[row];
  const float sign = args.inverse ? -1.0f : 1.0f;
  // A row has few pairs, so 32-bit division suffices; it is much faster than 64-bit division.
  const auto pairs = static_cast<unsigned>(args.rotated_heads * half),
             of_head = static_cast<unsigned>(half);
  if (position >= 0 && position < args.table_rows) {
    const float* const cosines = args.table + position * args.head_dim;
    for (unsigned pair = ThreadIndex() * N; pair < pairs; pair += BlockThreads() * N) {
      const unsigned i = pair % of_head, at = pair / of_head * 2 * of_head + i;
      const auto first = Pack<T, N>::Load(x + at), second = Pack<T, N>::Load(x + at + half);
      const auto cosine = Pack<float, N>::Load(cosines + i),
                 sine = Pack<float, N>::Load(cosines + half + i);
      Pack<T, N> rotated_first, rotated_second;
      for (int k = 0; k < N; ++k) {
        const float signed_sine = sine[k] * sign;
        rotated_first.Set(k, first[k] * cosine[k] - second[k] * signed_sine);
        rotated_second.Set(k, second[k] * cosine[k] + first[k] * signed_sine);
      }
      rotated_first.Store(y + at);
      rotated_second.Store(y + at + half);
    }
  } else {
    for (unsigned pair = ThreadIndex(); pair < pairs; pair += BlockThreads()) {
      const unsigned i = pair % of_head, at = pair / of_head * 2 * of_head + i;
      float cosine, sine;
      SinCos(static_cast<double>(position) * args.frequencies[i], &sine, &cosine);
      sine *= sign;
      const float first = Widen(x[at]), second = Widen(x[at + half]);
      y[at] = Narrow<T>(first * cosine - second * sine);
      y[at + half] = Narrow<T>(second * cosine + first * sine);
    }
  }
  if (x == y) return;
  for (int64_t at = 2 * int64_t{pairs} + int64_t{ThreadIndex()} * N; at < stride;
       at += int64_t{BlockThreads()} * N) {
    Pack<T, N>::Load(x + at).Store(y + at);
  }
}

template <typename T>
KernelLaunch RopeOf(const RopeArgs& args) {
  constexpr int kMany = kPack<T>;
  const int64_t half = args.head_dim / 2, pairs = args.rotated_heads * half;
  return Packs(half, sizeof(T), {args.x, args.y, args.table})
             ? MakeLaunch("rope", &RopeKernel<T, kMany>, BlocksFor(args.rows, pairs / kMany), args)
             : MakeLaunch("rope", &RopeKernel<T, 1>, BlocksFor(args.rows, pairs), args);
}

}  // namespace

KernelLaunch Rope(const RopeArgs& args, bool bfloat16) {
  return bfloat16 ? RopeOf<BFloat16>(args) : RopeOf<float>(args);
}

}  // namespace troupe::kernels::cuda
