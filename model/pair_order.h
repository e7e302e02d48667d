// In which order the operations of an overlapped pair run: F of one chunk with the backward of
// another chunk of the rank, so that a collective of the one is in flight while the other computes.
//
// Each side keeps the order of its own operations. A side runs until it would wait for a collective
// that it has begun; then the other side runs. Where the other side has waits left to hide, a side
// also pauses once it has done its share of its remaining work, so that there is something to
// compute for each of them. What writes persistent storage that both sides touch (the gradient of a
// tied table) keeps the order of F before the backward: sums have the bits of a pair that runs one
// side after the other.
//
// Pure. The order depends on the structure of the program alone: it is the same on all ranks of a
// group.
#ifndef TROUPE_MODEL_PAIR_ORDER_H_
#define TROUPE_MODEL_PAIR_ORDER_H_

#include <vector>

#include "model/program/program.h"

namespace troupe::model {

// Operations [begin, end) of one piece of a pair, in their order.
struct PieceRun {
  int piece = 0;  // 0: F; 1 and on: the backward pieces in their order
  int begin = 0, end = 0;
  bool operator==(const PieceRun&) const = default;
};

// `backward`: kBackward, or kInputGradient and kWeightGradient. Every operation comes once; a piece
// without operations has one empty run. Without a collective to hide, F comes whole before the
// backward.
std::vector<PieceRun> InterleavePair(const Program& program, int forward_chunk_index,
                                     int backward_chunk_index, const std::vector<Piece>& backward);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PAIR_ORDER_H_
