// The rows of a sample that a rank of the context axis holds: a head and a tail chunk
// (ShardHow::kHeadTail), or all.
#ifndef TROUPE_MODEL_PROGRAM_CONTEXT_ROWS_H_
#define TROUPE_MODEL_PROGRAM_CONTEXT_ROWS_H_

#include <algorithm>
#include <cstdint>

namespace troupe::model {

// Rows are stored in ascending order of their positions in the sample.
struct ContextRows {
  int64_t rows = 0;   // rows per sample on this rank
  int64_t chunk = 0;  // rows of the head chunk; the other rows are the tail chunk
  int64_t head = 0;   // position of the first row
  int64_t tail = 0;   // position of row `chunk`
  bool operator==(const ContextRows&) const = default;

  // The rows of rank `rank` of `ranks`, for samples of `tokens` rows. REQUIRES: tokens is a
  // multiple of 2·ranks, or ranks is 1.
  static ContextRows Of(int64_t tokens, int64_t ranks, int64_t rank) {
    if (ranks == 1) return {tokens, tokens, 0, tokens};
    const int64_t chunk = tokens / (2 * ranks);
    return {2 * chunk, chunk, rank * chunk, (2 * ranks - 1 - rank) * chunk};
  }

  // The position in the sample of row `row`.
  constexpr int64_t Position(int64_t row) const {
    return row < chunk ? head + row : tail + row - chunk;
  }

  // The number of these rows before `position`.
  constexpr int64_t CountBefore(int64_t position) const {
    const int64_t of_head = std::clamp<int64_t>(position - head, 0, chunk);
    return of_head + std::clamp<int64_t>(position - tail, 0, rows - chunk);
  }
};

// The rows that one tensor rank holds out of those sharded over tensor: one block, or one block of
// each of several equal parts of the rows.
struct TensorRows {
  int64_t first = 0;
  // Rows per block, and distance between blocks; 0: there is one block.
  int64_t block = 0, stride = 0;
  bool operator==(const TensorRows&) const = default;

  // The rows of rank `rank` of `ranks`, for `parts` parts of `rows` rows. REQUIRES: rows is a
  // multiple of parts · ranks.
  static TensorRows OfParts(int64_t rows, int64_t parts, int64_t ranks, int64_t rank) {
    const int64_t block = rows / (parts * ranks);
    return {rank * block, block, rows / parts};
  }

  // The index among all rows of this rank's row `row`.
  constexpr int64_t At(int64_t row) const {
    return block == 0 ? first + row : first + row / block * stride + row % block;
  }
};

// The distribution of a sample's 2 · ranks equal chunks over the context ranks. Each rank has two
// chunks in ascending order: a head and a tail chunk, or two neighbours.
enum class ChunkLayout : uint8_t { kHeadTail, kContiguous };

// The chunk at position `place` (0 or 1) of `rank`, and the rank that has `chunk`.
inline int ChunkAt(ChunkLayout layout, int ranks, int rank, int place) {
  if (layout == ChunkLayout::kContiguous) return 2 * rank + place;
  return place == 0 ? rank : 2 * ranks - 1 - rank;
}
inline int RankOfChunk(ChunkLayout layout, int ranks, int chunk) {
  if (layout == ChunkLayout::kContiguous) return chunk / 2;
  return std::min(chunk, 2 * ranks - 1 - chunk);
}

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_CONTEXT_ROWS_H_
