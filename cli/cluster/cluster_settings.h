// DIR/settings.json: what `troupe up` asked for; the supervisor makes it so. Kept over `down`, so that a cluster comes
// back on its ports.
#ifndef TROUPE_CLI_CLUSTER_CLUSTER_SETTINGS_H_
#define TROUPE_CLI_CLUSTER_CLUSTER_SETTINGS_H_

#include <string>
#include <vector>

#include "base/status.h"

namespace troupe {

struct ClusterSettings {
  int devices_per_worker = 1;
  double detection_seconds = 3;
  int coordinator_port = 0;
  int coordinator_metrics_port = 0;
  std::vector<int> worker_metrics_ports;  // one a worker

  int workers() const { return static_cast<int>(worker_metrics_ports.size()); }
  static std::string WorkerName(int index) { return fmt::format("worker-{}", index); }
};

// NOT_FOUND where `folder` never held a cluster.
StatusOr<ClusterSettings> ReadClusterSettings(const std::string& folder);
Status WriteClusterSettings(const std::string& folder, const ClusterSettings& settings);

}  // namespace troupe

#endif  // TROUPE_CLI_CLUSTER_CLUSTER_SETTINGS_H_
