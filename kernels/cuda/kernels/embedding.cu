// Embedding lookup, one block per row, and the deterministic accumulation of its gradients in token
// order: the rows of every id are listed in token order, then one block per id adds them up. The
// list is a counting sort: the rows are cut into parts, one block each, which count their rows of
// every id; sums over earlier parts and lower ids give each part the places of its rows.
#include "kernels/cuda/device_code/block_scan.h"
#include "kernels/cuda/device_code/numbers.h"
#include "kernels/cuda/device_code/shapes.h"
#include "kernels/cuda/kernels/kernels.h"

namespace troupe::kernels::cuda {
namespace {

constexpr int kListThreads = 1024;
constexpr int64_t kPartsMax = 64;  // maximum number of parts, each with a count per id
constexpr int kAhead = 8;          // rows, or counts, whose loads are in flight at once

int64_t PartsOf(int64_t rows) {
  return std::clamp<int64_t>((rows + kListThreads - 1) / kListThreads, 1, kPartsMax);
}

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

// The rows of id v are order[starts[v] .. starts[v+1]).
struct ListedEmbeddingGradArgs {
  EmbeddingGradArgs args;
  int32_t* starts;  // i[V+1]
  int32_t* order;   // i[R]
  int32_t* counts;  // i[parts,V]
  int64_t parts;
};

// The rows of a part, and the id of each row: -1 if it is outside this vocabulary slice.
struct RowPart {
  int64_t begin, end;
};
TROUPE_DEVICE RowPart PartOf(const ListedEmbeddingGradArgs& listed, int64_t part) {
  const int64_t rows = (listed.args.rows + listed.parts - 1) / listed.parts, begin = part * rows;
  return {begin, begin + rows < listed.args.rows ? begin + rows : listed.args.rows};
}
TROUPE_DEVICE int64_t IdOf(const EmbeddingGradArgs& args, int64_t row) {
  const int64_t id = args.tokens[row] - args.vocab_offset;
  return id >= 0 && id < args.vocabulary ? id : -1;
}

TROUPE_KERNEL_OF(kListThreads, 1) void CountRowsKernel(ListedEmbeddingGradArgs listed) {
  const EmbeddingGradArgs& args = listed.args;
  const RowPart part = PartOf(listed, BlockIndex().x);
  int32_t* const counts = listed.counts + BlockIndex().x * args.vocabulary;
  for (int64_t v = ThreadIndex(); v < args.vocabulary; v += kListThreads) counts[v] = 0;
  SyncBlock();
  for (int64_t row = part.begin + ThreadIndex(); row < part.end; row += kListThreads) {
    if (const int64_t id = IdOf(args, row); id >= 0) AtomicAdd(counts + id, 1);
  }
}

// One thread per id: replaces each part's count by the sum of the counts of earlier parts, and
// writes the total to `starts`.
TROUPE_KERNEL void SumPartsKernel(ListedEmbeddingGradArgs listed) {
  const int64_t id = int64_t{BlockIndex().x} * BlockThreads() + ThreadIndex(),
                vocabulary = listed.args.vocabulary;
  if (id > vocabulary) return;
  int32_t sum = 0;
  for (int64_t first = 0; first < listed.parts && id < vocabulary; first += kAhead) {
    int32_t counts[kAhead];
    TROUPE_UNROLL
    for (int k = 0; k < kAhead; ++k) {
      counts[k] = first + k < listed.parts ? listed.counts[(first + k) * vocabulary + id] : 0;
    }
    TROUPE_UNROLL
    for (int k = 0; k < kAhead; ++k) {
      if (first + k < listed.parts) listed.counts[(first + k) * vocabulary + id] = sum;
      sum += counts[k];
    }
  }
  listed.starts[id] = sum;
}

TROUPE_KERNEL_OF(kListThreads, 1) void FindStartsKernel(ListedEmbeddingGradArgs listed) {
  TROUPE_SHARED int32_t shared[kListThreads];
  ExclusiveScan<kListThreads>(listed.starts, listed.args.vocabulary + 1, shared);
}

TROUPE_KERNEL_OF(kListThreads, 1) void PlaceRowsKernel(ListedEmbeddingGradArgs listed) {
  TROUPE_SHARED int32_t shared[kListThreads];
  const EmbeddingGradArgs& args = listed.args;
  const int own = static_cast<int>(ThreadIndex());
  const RowPart part = PartOf(listed, BlockIndex().x);
  // Counts of the rows already placed.
  int32_t* const counts = listed.counts + BlockIndex().x * args.vocabulary;
  // Processes the rows tile by tile: each row is placed after those of its id in earlier tiles and
  // earlier in its own tile.
  for (int64_t first = part.begin; first < part.end; first += kListThreads) {
    const int64_t row = first + own, id = row < part.end ? IdOf(args, row) : -1;
    shared[own] = static_cast<int32_t>(id);
    SyncBlock();
    int32_t before = 0;
    bool last = true;
    for (int i = 0; i < kListThreads; ++i) {
      if (shared[i] != id || i == own) continue;
      if (i < own) ++before;
      if (i > own) last = false;
    }
    if (id >= 0) before += counts[id];
    SyncBlock();
    if (id >= 0) {
      listed.order[listed.starts[id] + before] = static_cast<int32_t>(row);
      if (last) counts[id] = before + 1;
    }
    SyncBlock();
  }
}

template <typename T, int N>
TROUPE_KERNEL void EmbeddingGradKernel(ListedEmbeddingGradArgs listed) {
  const EmbeddingGradArgs& args = listed.args;
  const int64_t id = BlockIndex().x;
  const int32_t begin = listed.starts[id], end = listed.starts[id + 1];
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
  constexpr int kMany = 4;  // sums that fit into registers next to four loads of eight rows
  const EmbeddingGradArgs& args = listed.args;
  return Packs(args.hidden, sizeof(T), {args.dy, args.gradient})
             ? MakeLaunch("embedding_grad", &EmbeddingGradKernel<T, kMany>,
                          BlocksFor(args.vocabulary, args.hidden / kMany), listed)
             : MakeLaunch("embedding_grad", &EmbeddingGradKernel<T, 1>,
                          BlocksFor(args.vocabulary, args.hidden), listed);
}

ListedEmbeddingGradArgs Listed(const EmbeddingGradArgs& args, void* scratch) {
  auto* const starts = static_cast<int32_t*>(scratch);
  int32_t* const order = starts + args.vocabulary + 1;
  return {args, starts, order, order + args.rows, PartsOf(args.rows)};
}

}  // namespace

KernelLaunch Embedding(const EmbeddingArgs& args, bool bfloat16) {
  return bfloat16 ? EmbeddingOf<BFloat16>(args) : EmbeddingOf<float>(args);
}

int64_t EmbeddingGradScratchBytes(int64_t rows, int64_t vocabulary) {
  return (vocabulary + 1 + rows + PartsOf(rows) * vocabulary) *
         static_cast<int64_t>(sizeof(int32_t));
}

std::array<KernelLaunch, 4> ListEmbeddingRows(const EmbeddingGradArgs& args, void* scratch) {
  const ListedEmbeddingGradArgs listed = Listed(args, scratch);
  const LaunchShape of_parts = {.blocks_x = static_cast<unsigned>(listed.parts),
                                .threads = kListThreads};
  return {
      MakeLaunch("count_embedding_rows", &CountRowsKernel, of_parts, listed),
      MakeLaunch("sum_embedding_parts", &SumPartsKernel, ThreadsFor(args.vocabulary + 1), listed),
      MakeLaunch("find_embedding_starts", &FindStartsKernel, {.threads = kListThreads}, listed),
      MakeLaunch("place_embedding_rows", &PlaceRowsKernel, of_parts, listed)};
}

KernelLaunch EmbeddingGrad(const EmbeddingGradArgs& args, void* scratch, bool bfloat16) {
  return bfloat16 ? EmbeddingGradOf<BFloat16>(Listed(args, scratch))
                  : EmbeddingGradOf<float>(Listed(args, scratch));
}

}  // namespace troupe::kernels::cuda
