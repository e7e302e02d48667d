// Which rows of a sample a rank of the context axis holds: a head and a tail chunk (ShardHow::kHeadTail), or all.
#ifndef TROUPE_MODEL_PROGRAM_CONTEXT_ROWS_H_
#define TROUPE_MODEL_PROGRAM_CONTEXT_ROWS_H_

#include <algorithm>
#include <cstdint>

namespace troupe::model {

// Rows are held in ascending order of their positions in the sample.
struct ContextRows {
  int64_t rows = 0;   // of a sample, here
  int64_t chunk = 0;  // rows of the head chunk; the rest is the tail
  int64_t head = 0;   // position of the first row
  int64_t tail = 0;   // position of row `chunk`
  bool operator==(const ContextRows&) const = default;

  // Of rank `rank` of `ranks`, with samples of `tokens` rows. REQUIRES: tokens is a multiple of 2·ranks, or
  // ranks is 1.
  static ContextRows Of(int64_t tokens, int64_t ranks, int64_t rank) {
    if (ranks == 1) return {tokens, tokens, 0, tokens};
    const int64_t chunk = tokens / (2 * ranks);
    return {2 * chunk, chunk, rank * chunk, (2 * ranks - 1 - rank) * chunk};
  }

  // The position in the sample of row `row`.
  constexpr int64_t Position(int64_t row) const { return row < chunk ? head + row : tail + row - chunk; }

  // How many of the rows lie before `position`.
  constexpr int64_t CountBefore(int64_t position) const {
    const int64_t of_head = std::clamp<int64_t>(position - head, 0, chunk);
    return of_head + std::clamp<int64_t>(position - tail, 0, rows - chunk);
  }
};

// Which of the rows that tensor ranks have between them one of them holds: a block, or one of each of several equal
// parts of the rows.
struct TensorRows {
  int64_t first = 0;
  int64_t block = 0, stride = 0;  // rows of a block, and from one to the next; 0: there is one block
  bool operator==(const TensorRows&) const = default;

  // Of rank `rank` of `ranks` with `parts` parts of `rows` rows. REQUIRES: rows is a multiple of parts · ranks.
  static TensorRows OfParts(int64_t rows, int64_t parts, int64_t ranks, int64_t rank) {
    const int64_t block = rows / (parts * ranks);
    return {rank * block, block, rows / parts};
  }

  // Where row `row` of those that it holds is among all.
  constexpr int64_t At(int64_t row) const {
    return block == 0 ? first + row : first + row / block * stride + row % block;
  }
};

// A sample's 2 · ranks chunks of equal size over the ranks of context, two on each, in ascending order: a
// head and a tail chunk, or two neighbours.
enum class ChunkLayout : uint8_t { kHeadTail, kContiguous };

// The chunk that `rank` has in place `place` (0 or 1), and the rank that has `chunk`.
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
