// The devices of a cluster that a plan may be placed on. Pure.
#ifndef TROUPE_PLAN_LAYOUT_CLUSTER_VIEW_H_
#define TROUPE_PLAN_LAYOUT_CLUSTER_VIEW_H_

#include <string>
#include <vector>

#include "troupe/v1/worker.pb.h"

namespace troupe {

// A device that a rank may be placed on.
struct ClusterDevice {
  std::string worker;
  std::string host;    // empty: the worker is a host of its own
  std::string island;  // empty: the host, or the slice of its TPU chips, is an island of its own
  v1::Device device;
};

struct ClusterView {
  std::vector<ClusterDevice> free_devices;  // in any order; the result does not depend on it
};

// `count` equal imaginary devices, each on a worker of its own, for plans without a cluster; the
// workers have empty names.
ClusterView ImaginedCluster(int count, const std::string& device_kind);

}  // namespace troupe

#endif  // TROUPE_PLAN_LAYOUT_CLUSTER_VIEW_H_
