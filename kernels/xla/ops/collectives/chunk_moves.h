// The moves of kRelayout in a slice: 2·n chunks of samples, two on each of n ranks, change from one
// layout to another in two steps, in each of which every rank sends one chunk and receives one.
#ifndef TROUPE_KERNELS_XLA_OPS_COLLECTIVES_CHUNK_MOVES_H_
#define TROUPE_KERNELS_XLA_OPS_COLLECTIVES_CHUNK_MOVES_H_

#include <array>
#include <vector>

#include "model/program/context_rows.h"

namespace troupe::kernels::xla {

struct ChunkMoves {
  struct Move {
    int from_place = 0, to = 0, to_place = 0;  // the receiver's rank and its place there
  };
  std::array<std::vector<Move>, 2> steps;  // by sending rank

  // Pure.
  static ChunkMoves Of(model::ChunkLayout from, model::ChunkLayout to, int ranks);
  // The place at which `rank` puts what step `step` brings.
  int ArrivesAt(int step, int rank) const;
};

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_OPS_COLLECTIVES_CHUNK_MOVES_H_
