// Which keys a query sees (as kernels/cpu/key_range.h): those of positions from its document's first to its own, which are a
// range of the keys that are here. Both ends of the range rise from query to query.
#ifndef TROUPE_KERNELS_CUDA_ATTENTION_KEYS_H_
#define TROUPE_KERNELS_CUDA_ATTENTION_KEYS_H_

#include <cstdint>

#include "kernels/arguments.h"
#include "kernels/cuda/attention_shape.h"
#include "kernels/cuda/mma.h"
#include "kernels/cuda/simt.h"

namespace troupe::kernels::cuda {

TROUPE_DEVICE int64_t Clamp(int64_t x, int64_t most) { return x < 0 ? 0 : x < most ? x : most; }

// As ContextRows::CountBefore and ContextRows::Position, on the device.
TROUPE_DEVICE int64_t CountBefore(const model::ContextRows& rows, int64_t position) {
  return Clamp(position - rows.head, rows.chunk) + Clamp(position - rows.tail, rows.rows - rows.chunk);
}
TROUPE_DEVICE int64_t PositionOf(const model::ContextRows& rows, int64_t row) {
  return row < rows.chunk ? rows.head + row : rows.tail + row - rows.chunk;
}

TROUPE_DEVICE const int32_t* DocumentsOf(const AttentionRows& rows, int64_t sample) {
  return rows.documents == nullptr ? nullptr : rows.documents + sample * rows.tokens;
}

// What query row `row` of a sample sees; `documents` are the sample's, or null.
TROUPE_DEVICE KeyRange SeenBy(const AttentionRows& rows, const int32_t* documents, int64_t row) {
  const int64_t position = PositionOf(rows.queries, row);
  const int64_t begin = documents == nullptr ? 0 : CountBefore(rows.keys, documents[position]);
  return {static_cast<int32_t>(begin), static_cast<int32_t>(CountBefore(rows.keys, position + 1))};
}

// Query rows [begin, end) outside which no query sees any of the keys [first, last).
struct QueryRange {
  int begin, end;
};
TROUPE_DEVICE QueryRange QueriesThatSee(const AttentionRows& rows, const int32_t* documents, int first, int last) {
  const auto begin = static_cast<int>(CountBefore(rows.queries, PositionOf(rows.keys, first)));
  const auto all = static_cast<int>(rows.queries.rows);
  if (documents == nullptr) return {begin, all};
  int low = begin, high = all;  // the first query of a document behind the keys is in [low, high]
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (SeenBy(rows, documents, middle).begin < last) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return {begin, low};
}

// What the queries from row `first` on see, each of a block's kRows in `seen`, by all threads of the block. Rows behind the
// last, `last`, see what it sees; where all of a warp's kOwn rows are behind it, nothing.
template <int kRows, int kOwn>
TROUPE_DEVICE void FindSeen(const AttentionRows& rows, const int32_t* documents, int first, int last,
                            KeyRange* seen) {
  for (int i = static_cast<int>(ThreadIndex()); i < kRows; i += static_cast<int>(BlockThreads())) {
    const int row = first + i;
    seen[i] = first + i / kOwn * kOwn > last ? KeyRange{} : SeenBy(rows, documents, row < last ? row : last);
  }
}

// Of queries in a row, given what the first and the last of them see, and the keys [key, key + count).
TROUPE_DEVICE bool AnySees(const KeyRange& first, const KeyRange& last, int key, int count) {
  return first.begin < key + count && last.end > key;
}
TROUPE_DEVICE bool AllSee(const KeyRange& first, const KeyRange& last, int key, int count) {
  return last.begin <= key && first.end >= key + count;
}

// Scores of keys outside what their query sees become -inf. Rows are queries, the first of which sees seen[0].
template <int kRowTiles, int kColumns>
TROUPE_DEVICE void HideKeys(FragmentC (&scores)[kRowTiles][kColumns], const KeyRange* seen, int first_key) {
  const int g = Lane() / 4, own = first_key + Lane() % 4 * 2;
  TROUPE_UNROLL
  for (int m = 0; m < kRowTiles; ++m) {
    TROUPE_UNROLL
    for (int half = 0; half < 2; ++half) {
      const KeyRange range = seen[16 * m + 8 * half + g];
      TROUPE_UNROLL
      for (int n = 0; n < kColumns; ++n) {
        TROUPE_UNROLL
        for (int i = 0; i < 2; ++i) {
          const int key = own + 8 * n + i;
          if (key < range.begin || key >= range.end) scores[m][n].of[2 * half + i] = -INFINITY;
        }
      }
    }
  }
}

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_ATTENTION_KEYS_H_
