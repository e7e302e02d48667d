// Gang placement: assigns a free device to every rank of a job, to all ranks or to none. Pure.
//
// All devices of a gang have the same kind, model, kernel level and versions, because identical
// results need them, and several GPUs have the same version of NCCL; a single GPU needs none. A
// tensor group stays inside an island wherever one has room for it, and so does a run of shards
// that gathers parameters for every pass. A gang uses as few islands as possible; inside an island
// its ranks are spread over the workers. TPU chips are placed by stages (slice_placement.h).
#ifndef TROUPE_PLAN_LAYOUT_PLACEMENT_H_
#define TROUPE_PLAN_LAYOUT_PLACEMENT_H_

#include <string>
#include <vector>

#include "base/status.h"
#include "plan/layout/cluster_view.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

struct GangPlacement {
  std::vector<v1::RankPlacement> ranks;  // by rank, coordinates included
  v1::DeviceKind device;                 // a gang of one rank has no `nccl`
  // The cores of a host divided evenly among the gang's ranks on it; the minimum over the hosts, at
  // least 1.
  int threads_per_rank = 1;
  std::vector<std::string> warnings;  // about tensor groups and runs of shards that cross islands
};

// Places the ranks of `mesh` on devices with kind.kind == `device_kind`. If `frozen` is given, only
// on devices equal to it (any one version of NCCL if it has none). `shard_run`: length of the runs
// of data_shard (plan/validate/reshard.h); 0: none. FAILED_PRECONDITION, with what is missing and
// what exists, where the free devices do not suffice.
StatusOr<GangPlacement> PlaceGang(const v1::MeshDegrees& mesh, const std::string& device_kind,
                                  const ClusterView& cluster, const v1::DeviceKind* frozen,
                                  int shard_run = 0);

}  // namespace troupe

#endif  // TROUPE_PLAN_LAYOUT_PLACEMENT_H_
