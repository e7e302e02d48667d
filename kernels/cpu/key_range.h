// Which keys each query of a block sees, and the mask that follows. For the files of kernels/cpu that are compiled once a
// level (level_target.h).
#ifndef TROUPE_KERNELS_CPU_KEY_RANGE_H_
#define TROUPE_KERNELS_CPU_KEY_RANGE_H_

#include "kernels/cpu/level_target.h"

namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE {

constexpr int64_t kQueries = 64;  // a block of queries; even
constexpr int64_t kKeys = 64;     // a block of keys; a multiple of kLanes · kTileVectors

// Keys [begin, end) of those that are here.
struct KeyRange {
  int64_t begin, end;
};

// The mask of one row of scores: keys outside the range become -inf.
TROUPE_INLINE F32 Masked(F32 scores, int64_t first_key, const KeyRange& seen) {
  const I32 keys = Iota();
  const F32 later =
      keys >= static_cast<int32_t>(seen.end - first_key) ? Set(-__builtin_inff()) : scores;
  return keys < static_cast<int32_t>(seen.begin - first_key) ? Set(-__builtin_inff()) : later;
}

TROUPE_INLINE int64_t Clamp(int64_t x, int64_t most) { return x < 0 ? 0 : x < most ? x : most; }

// As ContextRows::CountBefore: a function of this file is compiled for its level.
TROUPE_INLINE int64_t CountBefore(const model::ContextRows& rows, int64_t position) {
  return Clamp(position - rows.head, rows.chunk) +
         Clamp(position - rows.tail, rows.rows - rows.chunk);
}

// What query row `row` of a sample sees; `documents` are the sample's, or null.
TROUPE_INLINE KeyRange SeenBy(const AttentionRows& rows, const int32_t* documents, int64_t row) {
  const model::ContextRows& queries = rows.queries;
  const int64_t position =
      row < queries.chunk ? queries.head + row : queries.tail + row - queries.chunk;
  return {documents == nullptr ? 0 : CountBefore(rows.keys, documents[position]),
          CountBefore(rows.keys, position + 1)};
}

// Of a block of queries: both ends rise from row to row.
struct BlockRanges {
  KeyRange of[kQueries];
  KeyRange all;  // whole blocks of keys
};
TROUPE_INLINE void FindRanges(const AttentionRows& rows, const int32_t* documents, int64_t first,
                              int64_t count, BlockRanges* ranges) {
  for (int64_t r = 0; r < count; ++r) ranges->of[r] = SeenBy(rows, documents, first + r);
  ranges->all = {ranges->of[0].begin / kKeys * kKeys, ranges->of[count - 1].end};
}

TROUPE_INLINE bool SeesAny(const KeyRange& seen, int64_t key) {
  return seen.begin < seen.end && seen.begin < key + kKeys && seen.end > key;
}
TROUPE_INLINE bool SeesAll(const KeyRange& seen, int64_t key) {
  return seen.begin <= key && seen.end >= key + kKeys;
}

}  // namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE

#endif  // TROUPE_KERNELS_CPU_KEY_RANGE_H_
