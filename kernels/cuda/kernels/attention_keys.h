// The keys that a query attends to (as in kernels/cpu/key_range.h): those at positions from the
// start of its document to its own position, which are one range of the local keys. Both ends of
// the range increase from query to query.
#ifndef TROUPE_KERNELS_CUDA_KERNELS_ATTENTION_KEYS_H_
#define TROUPE_KERNELS_CUDA_KERNELS_ATTENTION_KEYS_H_

#include <cstdint>

#include "kernels/backend/arguments.h"
#include "kernels/cuda/device_code/mma.h"
#include "kernels/cuda/device_code/simt.h"
#include "kernels/cuda/kernels/attention_shape.h"

namespace troupe::kernels::cuda {

TROUPE_DEVICE int64_t Clamp(int64_t x, int64_t most) { return x < 0 ? 0 : x < most ? x : most; }

// Same as ContextRows::CountBefore and ContextRows::Position, for the device.
TROUPE_DEVICE int64_t CountBefore(const model::ContextRows& rows, int64_t position) {
  return Clamp(position - rows.head, rows.chunk) +
         Clamp(position - rows.tail, rows.rows - rows.chunk);
}
TROUPE_DEVICE int64_t PositionOf(const model::ContextRows& rows, int64_t row) {
  return row < rows.chunk ? rows.head + row : rows.tail + row - rows.chunk;
}

TROUPE_DEVICE const int32_t* DocumentsOf(const AttentionRows& rows, int64_t sample) {
  return rows.documents == nullptr ? nullptr : rows.documents + sample * rows.tokens;
}

// The keys that query row `row` of a sample attends to; `documents` are the sample's, or null.
TROUPE_DEVICE KeyRange VisibleKeys(const AttentionRows& rows, const int32_t* documents,
                                   int64_t row) {
  const int64_t position = PositionOf(rows.queries, row);
  const int64_t begin = documents == nullptr ? 0 : CountBefore(rows.keys, documents[position]);
  return {static_cast<int32_t>(begin), static_cast<int32_t>(CountBefore(rows.keys, position + 1))};
}

// Query rows [begin, end) that contain all queries that attend to any of the keys [first, last).
struct QueryRange {
  int begin, end;
};
TROUPE_DEVICE QueryRange QueriesAttendingTo(const AttentionRows& rows, const int32_t* documents,
                                            int first, int last) {
  const auto begin = static_cast<int>(CountBefore(rows.queries, PositionOf(rows.keys, first)));
  const auto all = static_cast<int>(rows.queries.rows);
  if (documents == nullptr) return {begin, all};
  int low = begin, high = all;  // the first query of a document after the keys is in [low, high]
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (VisibleKeys(rows, documents, middle).begin < last) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return {begin, low};
}

// Writes the key ranges of the block's kRows queries, starting at row `first`, to `visible`. All
// threads of the block must call it. Rows after `last` get the range of `last`; if all kOwn rows of
// a warp are after it, they get empty ranges.
template <int kRows, int kOwn>
TROUPE_DEVICE void FindVisibleKeys(const AttentionRows& rows, const int32_t* documents, int first,
                                   int last, KeyRange* visible) {
  for (int i = static_cast<int>(ThreadIndex()); i < kRows; i += static_cast<int>(BlockThreads())) {
    const int row = first + i;
    visible[i] = first + i / kOwn * kOwn > last
                     ? KeyRange{}
                     : VisibleKeys(rows, documents, row < last ? row : last);
  }
}

// Whether any, or all, of a range of queries attend to the keys [key, key + count), given the
// ranges of the first and the last query.
TROUPE_DEVICE bool AnyVisible(const KeyRange& first, const KeyRange& last, int key, int count) {
  return first.begin < key + count && last.end > key;
}
TROUPE_DEVICE bool AllVisible(const KeyRange& first, const KeyRange& last, int key, int count) {
  return last.begin <= key && first.end >= key + count;
}

// Sets the scores of keys that the query does not attend to to -inf. Rows are queries; the first
// one's range is visible[0].
template <int kRowTiles, int kColumns>
TROUPE_DEVICE void MaskScores(FragmentC (&scores)[kRowTiles][kColumns], const KeyRange* visible,
                              int first_key) {
  const int g = Lane() / 4, own = first_key + Lane() % 4 * 2;
  TROUPE_UNROLL
  for (int m = 0; m < kRowTiles; ++m) {
    TROUPE_UNROLL
    for (int half = 0; half < 2; ++half) {
      const KeyRange range = visible[16 * m + 8 * half + g];
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

#endif  // TROUPE_KERNELS_CUDA_KERNELS_ATTENTION_KEYS_H_
