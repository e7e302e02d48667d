// Rotary position embeddings: rotates pair (i, i + D/2) of every query and key head by position ·
// frequency(i).
#include <cmath>

#include "kernels/cpu/level_target.h"

namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE {

template <typename T>
TROUPE_INLINE void Rotate(const T* x, T* y, const float* cosines, const float* sines, int64_t half,
                          float sign) {
  for (int64_t i = 0; i < half; i += kLanes) {
    const int64_t count = half - i;
    const F32 cosine = LoadUpTo(cosines + i, count);
    const F32 sine = LoadUpTo(sines + i, count) * sign;
    const F32 first = LoadUpTo(x + i, count);
    const F32 second = LoadUpTo(x + half + i, count);
    StoreUpTo(y + i, count, first * cosine - second * sine);
    StoreUpTo(y + half + i, count, second * cosine + first * sine);
  }
}

template <typename T>
void Rope(const RopeArgs& args, int thread, int threads) {
  const Part part = PartOf(args.rows, thread, threads);
  const int64_t half = args.head_dim / 2;
  const int64_t stride = (args.rotated_heads + args.copied_heads) * args.head_dim;
  const float sign = args.inverse ? -1.0f : 1.0f;
  for (int64_t r = part.begin; r < part.end; ++r) {
    const T* x = static_cast<const T*>(args.x) + r * stride;
    T* y = static_cast<T*>(args.y) + r * stride;
    const int64_t position = args.positions[r];
    if (position >= 0 && position < args.table_rows) {
      const float* cosines = args.table + position * args.head_dim;
      for (int64_t head = 0; head < args.rotated_heads; ++head) {
        Rotate(x + head * args.head_dim, y + head * args.head_dim, cosines, cosines + half, half,
               sign);
      }
    } else {
      for (int64_t i = 0; i < half; ++i) {
        const double angle = static_cast<double>(position) * args.frequencies[i];
        const float cosine = static_cast<float>(__builtin_cos(angle));
        const float sine = static_cast<float>(__builtin_sin(angle));
        for (int64_t head = 0; head < args.rotated_heads; ++head) {
          const int64_t at = head * args.head_dim + i;
          // One lane at a time, because positions beyond the table are rare.
          const F32 first = LoadPartial(x + at, 1);
          const F32 second = LoadPartial(x + at + half, 1);
          StorePartial(y + at, 1, first * cosine - second * sine * sign);
          StorePartial(y + at + half, 1, second * cosine + first * sine * sign);
        }
      }
    }
    const int64_t rotated = args.rotated_heads * args.head_dim;
    if (x != y) std::memcpy(y + rotated, x + rotated, (stride - rotated) * sizeof(T));
  }
}

template void Rope<float>(const RopeArgs&, int, int);
template void Rope<BFloat16>(const RopeArgs&, int, int);

}  // namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE

#include "kernels/cpu/level_end.h"
