// The order of the operations of an overlapped pair: F of one chunk interleaved with the backward
// of another chunk of the rank, so that a collective of one is in flight while the other computes.
//
// Each side keeps the order of its own operations. A side runs until it would wait for a collective
// that it has begun; then the other side runs. If the other side has waits left to hide, a side
// also pauses after its share of its remaining work, so that there is work left for each of them.
// Operations that write persistent storage of both sides (the gradient of a tied table) keep F
// before the backward, so sums have the same bits as when one side runs after the other.
//
// Pure. The order depends only on the program's structure, so it is identical on all ranks of a
// group.
#ifndef TROUPE_MODEL_PAIR_ORDER_H_
#define TROUPE_MODEL_PAIR_ORDER_H_

#include <vector>

#include "model/program/program.h"

namespace troupe::model {

// Operations [begin, end) of one piece of a pair, in sequence.
struct PieceRun {
  int piece = 0;  // 0: F; from 1 on: the backward pieces in order
  int begin = 0, end = 0;
  bool operator==(const PieceRun&) const = default;
};

// `backward`: kBackward, or kInputGradient and kWeightGradient. Every operation occurs once; a
// piece without operations has one empty run. If there is no collective to hide, all of F runs
// before the backward.
std::vector<PieceRun> InterleavePair(const Program& program, int forward_chunk_index,
                                     int backward_chunk_index, const std::vector<Piece>& backward);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PAIR_ORDER_H_
