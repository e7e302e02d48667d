// Rows of the table, a block each.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/numbers.h"
#include "kernels/cuda/shapes.h"

namespace troupe::kernels::cuda {
namespace {

template <typename T, int N>
TROUPE_KERNEL void EmbeddingKernel(EmbeddingArgs args) {
  const int64_t row = BlockIndex().x;
  const int64_t id = args.tokens[row] - args.vocab_offset;
  const bool here = id >= 0 && id < args.vocabulary;
  const T* from = static_cast<const T*>(args.table) + (here ? id : 0) * args.hidden;
  T* to = static_cast<T*>(args.y) + row * args.hidden;
  for (int64_t h = int64_t{ThreadIndex()} * N; h < args.hidden; h += int64_t{BlockThreads()} * N) {
    Pack<T, N> y{};
    if (here) y = Pack<T, N>::Load(from + h);
    y.Store(to + h);
  }
}

template <typename T>
KernelLaunch EmbeddingOf(const EmbeddingArgs& args) {
  constexpr int kMany = kPack<T>;
  return Packs(args.hidden, sizeof(T), {args.table, args.y})
             ? MakeLaunch("embedding", &EmbeddingKernel<T, kMany>,
                          BlocksFor(args.rows, args.hidden / kMany), args)
             : MakeLaunch("embedding", &EmbeddingKernel<T, 1>, BlocksFor(args.rows, args.hidden),
                          args);
}

}  // namespace

KernelLaunch Embedding(const EmbeddingArgs& args, bool bfloat16) {
  return bfloat16 ? EmbeddingOf<BFloat16>(args) : EmbeddingOf<float>(args);
}

}  // namespace troupe::kernels::cuda
