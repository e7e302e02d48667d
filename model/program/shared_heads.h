// Key and value heads that are fewer than the tensor ranks: neighbours on the axis hold the same
// head.
//
// As stored, the axis is divided into runs of `run` neighbours; the ranks of a run hold the same
// slice. As used, every rank has its own head: the heads are repeated `run` times and Shard(0,
// kSegments). The kCopy over a run that converts between the two moves nothing; its derivative is
// the sum of the run's gradients.
#ifndef TROUPE_MODEL_PROGRAM_SHARED_HEADS_H_
#define TROUPE_MODEL_PROGRAM_SHARED_HEADS_H_

#include "model/program/placement.h"

namespace troupe::model {

// The placement on the tensor axis of heads along dim 0 as stored. REQUIRES: run >= 2.
inline AxisPlacement SharedHeads(int run) {
  return {PlacementKind::kShard, 0, ShardHow::kSegments, 0, run, PlacementKind::kReplicated};
}

inline bool IsSharedHeads(const AxisPlacement& placement) {
  return placement.run > 0 && placement == SharedHeads(placement.run);
}

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_SHARED_HEADS_H_
