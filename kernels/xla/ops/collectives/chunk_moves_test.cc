#include "kernels/xla/ops/collectives/chunk_moves.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace troupe::kernels::xla {
namespace {

using model::ChunkLayout;

TEST(ChunkMoves, BringEveryChunkToItsPlaceAndOneToEachRankInEachStep) {
  for (const auto& [from, to] : {std::pair(ChunkLayout::kHeadTail, ChunkLayout::kContiguous),
                                 std::pair(ChunkLayout::kContiguous, ChunkLayout::kHeadTail)}) {
    for (int ranks = 2; ranks <= 9; ++ranks) {
      const ChunkMoves moves = ChunkMoves::Of(from, to, ranks);
      std::set<std::pair<int, int>> places;
      for (int step = 0; step < 2; ++step) {
        std::set<int> receivers;
        for (int rank = 0; rank < ranks; ++rank) {
          const ChunkMoves::Move& move = moves.steps[step][rank];
          EXPECT_EQ(model::ChunkAt(from, ranks, rank, move.from_place),
                    model::ChunkAt(to, ranks, move.to, move.to_place));
          EXPECT_EQ(moves.ArrivesAt(step, move.to), move.to_place);
          receivers.insert(move.to);
          places.insert({move.to, move.to_place});
        }
        EXPECT_EQ(std::ssize(receivers), ranks) << "step " << step;
      }
      EXPECT_EQ(std::ssize(places), 2 * ranks);
    }
  }
}

}  // namespace
}  // namespace troupe::kernels::xla
