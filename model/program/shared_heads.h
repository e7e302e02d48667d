// Heads of keys and values that are fewer than the ranks of tensor: neighbours on the axis hold one alike.
//
// As stored, the axis is cut into runs of `run` neighbours, each of which holds a slice, all its ranks the same. As used,
// every rank has a head of its own: the heads are repeated `run` times and Shard(0, kSegments). The copy over a run that
// leads from the one to the other moves nothing; its derivative is the sum of a run's gradients.
#ifndef TROUPE_MODEL_PROGRAM_SHARED_HEADS_H_
#define TROUPE_MODEL_PROGRAM_SHARED_HEADS_H_

#include "model/program/placement.h"

namespace troupe::model {

// On the tensor axis, of heads along dim 0 as they are stored. REQUIRES: run >= 2.
inline AxisPlacement SharedHeads(int run) {
  return {PlacementKind::kShard, 0, ShardHow::kSegments, 0, run, PlacementKind::kReplicated};
}

inline bool IsSharedHeads(const AxisPlacement& placement) {
  return placement.run > 0 && placement == SharedHeads(placement.run);
}

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_SHARED_HEADS_H_
