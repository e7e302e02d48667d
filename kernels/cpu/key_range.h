// The keys that each query of a block attends to, and the resulting mask. Included after
// level_target.h.
#ifndef TROUPE_KERNELS_CPU_KEY_RANGE_H_
#define TROUPE_KERNELS_CPU_KEY_RANGE_H_

namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE {

constexpr int64_t kQueries = 64;  // queries per block; even
constexpr int64_t kKeys = 64;     // keys per block; a multiple of kLanes · kTileVectors

// Local keys [begin, end).
struct KeyRange {
  int64_t begin, end;
};

// Masks one row of scores: keys outside the range become -inf.
TROUPE_INLINE F32 Masked(F32 scores, int64_t first_key, const KeyRange& visible) {
  const I32 keys = Iota();
  const F32 later =
      keys >= static_cast<int32_t>(visible.end - first_key) ? Set(-__builtin_inff()) : scores;
  return keys < static_cast<int32_t>(visible.begin - first_key) ? Set(-__builtin_inff()) : later;
}

TROUPE_INLINE int64_t Clamp(int64_t x, int64_t most) { return x < 0 ? 0 : x < most ? x : most; }

// Same as ContextRows::CountBefore, but compiled for this file's level.
TROUPE_INLINE int64_t CountBefore(const model::ContextRows& rows, int64_t position) {
  return Clamp(position - rows.head, rows.chunk) +
         Clamp(position - rows.tail, rows.rows - rows.chunk);
}

// The keys that query row `row` of a sample attends to; `documents` are the sample's, or null.
TROUPE_INLINE KeyRange VisibleKeys(const AttentionRows& rows, const int32_t* documents,
                                   int64_t row) {
  const model::ContextRows& queries = rows.queries;
  const int64_t position =
      row < queries.chunk ? queries.head + row : queries.tail + row - queries.chunk;
  return {documents == nullptr ? 0 : CountBefore(rows.keys, documents[position]),
          CountBefore(rows.keys, position + 1)};
}

// The key ranges of a block of queries; both ends increase from row to row.
struct BlockRanges {
  KeyRange of[kQueries];
  KeyRange all;  // the union, from the start of a block of keys
};
TROUPE_INLINE void FindRanges(const AttentionRows& rows, const int32_t* documents, int64_t first,
                              int64_t count, BlockRanges* ranges) {
  for (int64_t r = 0; r < count; ++r) ranges->of[r] = VisibleKeys(rows, documents, first + r);
  ranges->all = {ranges->of[0].begin / kKeys * kKeys, ranges->of[count - 1].end};
}

TROUPE_INLINE bool AnyVisible(const KeyRange& visible, int64_t key) {
  return visible.begin < visible.end && visible.begin < key + kKeys && visible.end > key;
}
TROUPE_INLINE bool AllVisible(const KeyRange& visible, int64_t key) {
  return visible.begin <= key && visible.end >= key + kKeys;
}

}  // namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE

#endif  // TROUPE_KERNELS_CPU_KEY_RANGE_H_
