#include "kernels/xla/ops/collectives/chunk_moves.h"

#include "base/check.h"

namespace troupe::kernels::xla {

// Every rank sends two chunks and receives two. So the moves form cycles in which senders and
// receivers alternate; going along a cycle, moves belong to the two steps alternately.
ChunkMoves ChunkMoves::Of(model::ChunkLayout from, model::ChunkLayout to, int ranks) {
  const auto rank_in = [&](model::ChunkLayout layout, int chunk) {
    return model::RankOfChunk(layout, ranks, chunk);
  };
  const auto place_in = [&](model::ChunkLayout layout, int chunk) {
    return model::ChunkAt(layout, ranks, rank_in(layout, chunk), 0) == chunk ? 0 : 1;
  };
  const auto other_at = [&](model::ChunkLayout layout, int chunk) {
    return model::ChunkAt(layout, ranks, rank_in(layout, chunk), 1 - place_in(layout, chunk));
  };
  ChunkMoves moves;
  for (std::vector<Move>& step : moves.steps) step.resize(static_cast<size_t>(ranks));
  std::vector<bool> done(static_cast<size_t>(2 * ranks));
  const auto add = [&](int step, int chunk) {
    done[chunk] = true;
    moves.steps[step][rank_in(from, chunk)] = {place_in(from, chunk), rank_in(to, chunk),
                                               place_in(to, chunk)};
  };
  for (int first = 0; first < 2 * ranks; ++first) {
    for (int chunk = first; !done[chunk];) {
      add(0, chunk);
      const int received_too = other_at(to, chunk);
      add(1, received_too);
      chunk = other_at(from, received_too);
    }
  }
  return moves;
}

int ChunkMoves::ArrivesAt(int step, int rank) const {
  for (const Move& move : steps[step]) {
    if (move.to == rank) return move.to_place;
  }
  TROUPE_CHECK(false, "no chunk arrives at rank {} in step {}", rank, step);
  return 0;
}

}  // namespace troupe::kernels::xla
