// Embedding lookup, and the deterministic accumulation of its gradients.
#include "kernels/cpu/level_target.h"

namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE {

template <typename T>
void Embedding(const EmbeddingArgs& args, int thread, int threads) {
  const Part part = PartOf(args.rows, thread, threads);
  const size_t row_bytes = args.hidden * sizeof(T);
  for (int64_t r = part.begin; r < part.end; ++r) {
    T* y = static_cast<T*>(args.y) + r * args.hidden;
    const int64_t id = args.tokens[r] - args.vocab_offset;
    if (id >= 0 && id < args.vocabulary) {
      std::memcpy(y, static_cast<const T*>(args.table) + id * args.hidden, row_bytes);
    } else {
      std::memset(y, 0, row_bytes);
    }
  }
}

// Each thread owns a range of columns and adds the rows to it in order. Threads thus share no data,
// and every sum is in token order.
template <typename T>
void EmbeddingGrad(const EmbeddingGradArgs& args, int thread, int threads) {
  const Part columns = PartOf(args.hidden, thread, threads, kLanes);
  const int64_t width = columns.end - columns.begin;
  if (width == 0) return;
  if (!args.accumulate) {
    for (int64_t v = 0; v < args.vocabulary; ++v) {
      std::memset(args.gradient + v * args.hidden + columns.begin, 0, width * sizeof(float));
    }
  }
  for (int64_t r = 0; r < args.rows; ++r) {
    const int64_t id = args.tokens[r] - args.vocab_offset;
    if (id < 0 || id >= args.vocabulary) continue;
    const T* dy = static_cast<const T*>(args.dy) + r * args.hidden + columns.begin;
    float* gradient = args.gradient + id * args.hidden + columns.begin;
    for (int64_t h = 0; h < width; h += kLanes) {
      const int64_t count = width - h;
      StoreUpTo(gradient + h, count, LoadUpTo(gradient + h, count) + LoadUpTo(dy + h, count));
    }
  }
}

template void Embedding<float>(const EmbeddingArgs&, int, int);
template void Embedding<BFloat16>(const EmbeddingArgs&, int, int);
template void EmbeddingGrad<float>(const EmbeddingGradArgs&, int, int);
template void EmbeddingGrad<BFloat16>(const EmbeddingGradArgs&, int, int);

}  // namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE

#include "kernels/cpu/level_end.h"
