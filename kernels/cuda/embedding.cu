// Rows of the table, a block each; and the sum of gradients into them, each in the order of its tokens: rows are ranked among
// those of their id, a block a tile of rows; one block lists the rows of every id in order; then a block for each id adds
// them up.
#include "kernels/cuda/block_scan.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/numbers.h"
#include "kernels/cuda/shapes.h"

namespace troupe::kernels::cuda {
namespace {

constexpr int kListThreads = 1024;
constexpr int kAhead = 8;  // rows whose loads are under way at once

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

// The rows of id v are order[ends[v-1] .. ends[v]).
struct ListedEmbeddingGradArgs {
  EmbeddingGradArgs args;
  int32_t* ends;   // i[V]
  int32_t* order;  // i[R]
  int32_t* ranks;  // i[R]: 2 · rows of the same id before it in its tile, and 1 of the last of them
};

// -1: not of this slice of the vocabulary, or no row.
TROUPE_DEVICE int32_t IdOf(const EmbeddingGradArgs& args, int64_t row) {
  const int64_t id = row < args.rows ? args.tokens[row] - args.vocab_offset : -1;
  return id >= 0 && id < args.vocabulary ? static_cast<int32_t>(id) : -1;
}

TROUPE_KERNEL_OF(kListThreads, 1) void RankRowsKernel(ListedEmbeddingGradArgs listed) {
  TROUPE_SHARED int32_t ids alignas(16)[kListThreads];
  const int own = static_cast<int>(ThreadIndex());
  const int64_t row = int64_t{BlockIndex().x} * kListThreads + own;
  const int32_t id = IdOf(listed.args, row);
  ids[own] = id;
  SyncBlock();
  int32_t before = 0;
  bool last = true;
  for (int i = 0; i < kListThreads; ++i) {
    if (ids[i] != id) continue;
    if (i < own) ++before;
    if (i > own) last = false;
  }
  if (row < listed.args.rows) listed.ranks[row] = 2 * before + (last ? 1 : 0);
}

TROUPE_KERNEL_OF(kListThreads, 1) void ListRowsKernel(ListedEmbeddingGradArgs listed) {
  TROUPE_SHARED int32_t shared[kListThreads];
  const EmbeddingGradArgs& args = listed.args;
  const int own = static_cast<int>(ThreadIndex());
  for (int64_t v = own; v < args.vocabulary; v += kListThreads) listed.ends[v] = 0;
  SyncBlock();
  for (int64_t row = own; row < args.rows; row += kListThreads) {
    if (const int32_t id = IdOf(args, row); id >= 0) AtomicAdd(listed.ends + id, 1);
  }
  SyncBlock();
  ExclusiveScan<kListThreads>(listed.ends, args.vocabulary, shared);
  // A tile of rows after the other: each goes behind those of its id in earlier tiles and earlier in its own.
  int32_t id = IdOf(args, own), rank = own < args.rows ? listed.ranks[own] : 0;
  for (int64_t row = own; row - own < args.rows; row += kListThreads) {
    const int32_t place = id >= 0 ? listed.ends[id] + rank / 2 : 0;
    const int64_t next = row + kListThreads;  // whose loads are under way meanwhile
    const int32_t next_id = IdOf(args, next), next_rank = next < args.rows ? listed.ranks[next] : 0;
    SyncBlock();
    if (id >= 0) {
      listed.order[place] = static_cast<int32_t>(row);
      if (rank % 2 != 0) listed.ends[id] = place + 1;
    }
    SyncBlock();
    id = next_id;
    rank = next_rank;
  }
}

template <typename T, int N>
TROUPE_KERNEL void EmbeddingGradKernel(ListedEmbeddingGradArgs listed) {
  const EmbeddingGradArgs& args = listed.args;
  const int64_t id = BlockIndex().x;
  const int32_t begin = id == 0 ? 0 : listed.ends[id - 1], end = listed.ends[id];
  if (begin == end && args.accumulate) return;
  float* const gradient = args.gradient + id * args.hidden;
  for (int64_t h = int64_t{ThreadIndex()} * N; h < args.hidden; h += int64_t{BlockThreads()} * N) {
    Pack<float, N> sum{};
    if (args.accumulate) sum = Pack<float, N>::Load(gradient + h);
    for (int32_t i = begin; i < end; i += kAhead) {
      Pack<T, N> dy[kAhead];
      TROUPE_UNROLL
      for (int k = 0; k < kAhead; ++k) {
        if (i + k >= end) break;
        dy[k] = Pack<T, N>::Load(static_cast<const T*>(args.dy) +
                                 int64_t{listed.order[i + k]} * args.hidden + h);
      }
      TROUPE_UNROLL
      for (int k = 0; k < kAhead; ++k) {
        if (i + k >= end) break;
        for (int n = 0; n < N; ++n) sum.values[n] += dy[k][n];
      }
    }
    sum.Store(gradient + h);
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

template <typename T>
KernelLaunch EmbeddingGradOf(const ListedEmbeddingGradArgs& listed) {
  constexpr int kMany = 4;  // as many sums in registers as four loads of eight rows leave room for
  const EmbeddingGradArgs& args = listed.args;
  return Packs(args.hidden, sizeof(T), {args.dy, args.gradient})
             ? MakeLaunch("embedding_grad", &EmbeddingGradKernel<T, kMany>,
                          BlocksFor(args.vocabulary, args.hidden / kMany), listed)
             : MakeLaunch("embedding_grad", &EmbeddingGradKernel<T, 1>,
                          BlocksFor(args.vocabulary, args.hidden), listed);
}

ListedEmbeddingGradArgs Listed(const EmbeddingGradArgs& args, void* scratch) {
  auto* const ends = static_cast<int32_t*>(scratch);
  int32_t* const order = ends + args.vocabulary;
  return {args, ends, order, order + args.rows};
}

}  // namespace

KernelLaunch Embedding(const EmbeddingArgs& args, bool bfloat16) {
  return bfloat16 ? EmbeddingOf<BFloat16>(args) : EmbeddingOf<float>(args);
}

int64_t EmbeddingGradScratchBytes(int64_t rows, int64_t vocabulary) {
  return (2 * rows + vocabulary) * static_cast<int64_t>(sizeof(int32_t));
}

std::array<KernelLaunch, 2> ListEmbeddingRows(const EmbeddingGradArgs& args, void* scratch) {
  const ListedEmbeddingGradArgs listed = Listed(args, scratch);
  return {MakeLaunch("rank_embedding_rows", &RankRowsKernel, ThreadsFor(args.rows, kListThreads), listed),
          MakeLaunch("list_embedding_rows", &ListRowsKernel, {.threads = kListThreads}, listed)};
}

KernelLaunch EmbeddingGrad(const EmbeddingGradArgs& args, void* scratch, bool bfloat16) {
  return bfloat16 ? EmbeddingGradOf<BFloat16>(Listed(args, scratch))
                  : EmbeddingGradOf<float>(Listed(args, scratch));
}

}  // namespace troupe::kernels::cuda
