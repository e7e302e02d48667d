// Gang placement: which free device every rank of a job runs on, all ranks or none. Pure.
//
// One device kind, model, kernel level and set of versions per gang (the same bits need them), and one version of NCCL for
// several GPUs; one alone needs none. A tensor group stays
// inside an island wherever one has room for it, and so does a run of shards that gathers parameters for every pass; a gang
// takes as few islands as it can; inside an island its ranks spread over the workers.
#ifndef TROUPE_PLAN_PLACEMENT_H_
#define TROUPE_PLAN_PLACEMENT_H_

#include <string>
#include <vector>

#include "base/status.h"
#include "troupe/v1/plan.pb.h"
#include "troupe/v1/worker.pb.h"

namespace troupe {

// A device that a rank may be placed on.
struct ClusterDevice {
  std::string worker;
  std::string host;    // empty: the worker is a host of its own
  std::string island;  // empty: the host is an island of its own
  v1::Device device;
};

struct ClusterView {
  std::vector<ClusterDevice> free_devices;  // in any order; the result does not depend on it
};

// `count` equal imagined devices of one worker each, for plans without a cluster; workers have empty names.
ClusterView ImaginedCluster(int count, const std::string& device_kind);

struct GangPlacement {
  std::vector<v1::RankPlacement> ranks;  // by rank, coordinates included
  v1::DeviceKind device;  // of one rank without `nccl`
  // Cores of a host shared fairly among the gang's ranks on it, the least over the hosts, at least 1.
  int threads_per_rank = 1;
  std::vector<std::string> warnings;  // tensor groups and runs of shards that cross islands
};

// Places the ranks of `mesh` on devices whose kind.kind is `device_kind`; where `frozen` is given, only on devices
// equal to it (where it says nothing of NCCL, of any one version). `shard_run`: of data_shard (plan/reshard.h); 0: none.
// FAILED_PRECONDITION saying what is missing, and what there is, where the free devices do not suffice.
StatusOr<GangPlacement> PlaceGang(const v1::MeshDegrees& mesh, const std::string& device_kind,
                                  const ClusterView& cluster, const v1::DeviceKind* frozen,
                                  int shard_run = 0);

}  // namespace troupe

#endif  // TROUPE_PLAN_PLACEMENT_H_
