// y = silu(gate)·up and its gradient; a row of gu is gate[F] | up[F].
#include "kernels/cpu/level_target.h"

namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE {

namespace {

// The number of rows to compute: all, or the sum of the counts.
template <typename Args>
TROUPE_INLINE int64_t RowsOf(const Args& args) {
  if (args.counts == nullptr) return args.rows;
  int64_t rows = 0;
  for (int64_t c = 0; c < args.num_counts; ++c) rows += args.counts[c];
  return rows;
}

}  // namespace

TROUPE_INLINE F32 Sigmoid(F32 x) { return 1.0f / (1.0f + Exp(-x)); }

template <typename T>
void SwiGlu(const SwiGluArgs& args, int thread, int threads) {
  const Part part = PartOf(RowsOf(args), thread, threads);
  for (int64_t r = part.begin; r < part.end; ++r) {
    const T* gate = static_cast<const T*>(args.gu) + r * 2 * args.ffn;
    const T* up = gate + args.ffn;
    T* y = static_cast<T*>(args.y) + r * args.ffn;
    for (int64_t f = 0; f < args.ffn; f += kLanes) {
      const int64_t count = args.ffn - f;
      const F32 g = LoadUpTo(gate + f, count);
      StoreUpTo(y + f, count, g * Sigmoid(g) * LoadUpTo(up + f, count));
    }
  }
}

template <typename T>
void SwiGluGrad(const SwiGluGradArgs& args, int thread, int threads) {
  const Part part = PartOf(RowsOf(args), thread, threads);
  for (int64_t r = part.begin; r < part.end; ++r) {
    const T* dy = static_cast<const T*>(args.dy) + r * args.ffn;
    const T* gate = static_cast<const T*>(args.gu) + r * 2 * args.ffn;
    T* gradient = static_cast<T*>(args.dgu) + r * 2 * args.ffn;
    for (int64_t f = 0; f < args.ffn; f += kLanes) {
      const int64_t count = args.ffn - f;
      const F32 d = LoadUpTo(dy + f, count);
      const F32 g = LoadUpTo(gate + f, count);
      const F32 up = LoadUpTo(gate + args.ffn + f, count);
      const F32 sigmoid = Sigmoid(g);
      StoreUpTo(gradient + f, count, d * up * sigmoid * (1.0f + g * (1.0f - sigmoid)));
      StoreUpTo(gradient + args.ffn + f, count, d * g * sigmoid);
    }
  }
}

template void SwiGlu<float>(const SwiGluArgs&, int, int);
template void SwiGlu<BFloat16>(const SwiGluArgs&, int, int);
template void SwiGluGrad<float>(const SwiGluGradArgs&, int, int);
template void SwiGluGrad<BFloat16>(const SwiGluGradArgs&, int, int);

}  // namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE

#include "kernels/cpu/level_end.h"
