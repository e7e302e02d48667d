// What of a stage's memory an axis of the mesh does not cut. Pure.
#ifndef TROUPE_PLAN_REPLICATION_H_
#define TROUPE_PLAN_REPLICATION_H_

#include <span>
#include <vector>

#include "model/program/program.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// One entry an axis, in the order of model::Axis. A value counts where the program does not shard
// it along the axis: each rank of the axis has all of it, or the whole of its own summands. Where
// the axis has one rank it is what a longer one would leave so. `buffers`: microbatches in flight
// of each chunk. `saved_bytes`: those of the stage's memory, of which activations have their share.
std::vector<v1::AxisReplication> ReplicationOf(const model::Program& program,
                                               std::span<const int> buffers, int64_t saved_bytes);

}  // namespace troupe

#endif  // TROUPE_PLAN_REPLICATION_H_
