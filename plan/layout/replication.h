// Measures the part of a stage's memory that an axis of the mesh replicates. Pure.
#ifndef TROUPE_PLAN_LAYOUT_REPLICATION_H_
#define TROUPE_PLAN_LAYOUT_REPLICATION_H_

#include <span>
#include <vector>

#include "model/program/program.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// Returns one entry for each axis, in the order of model::Axis. A value counts as replicated where
// the program does not shard it along the axis: each rank of the axis holds all of it, or its own
// partial sum of full size. The state of pipe is that of tied parameters. For an axis of degree 1
// the figures are those of a longer axis. `buffers`: in-flight microbatches of each chunk.
// `saved_bytes`: the bytes of saved values in the stage's memory, of which activations get their
// share.
std::vector<v1::AxisReplication> ReplicationOf(const model::Program& program,
                                               std::span<const int> buffers, int64_t saved_bytes);

}  // namespace troupe

#endif  // TROUPE_PLAN_LAYOUT_REPLICATION_H_
