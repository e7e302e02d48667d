#include "plan/layout/cluster_view.h"

namespace troupe {

ClusterView ImaginedCluster(int count, const std::string& device_kind) {
  ClusterView cluster;
  cluster.free_devices.resize(count);
  for (int i = 0; i < count; ++i) {
    cluster.free_devices[i].device.set_index(i);
    cluster.free_devices[i].device.mutable_kind()->set_kind(device_kind);
  }
  return cluster;
}

}  // namespace troupe
