// DIR/settings.json: the cluster that `troupe up` requested and the supervisor maintains. `down`
// keeps the file, so that a cluster restarts on the same ports.
#ifndef TROUPE_CLI_CLUSTER_CLUSTER_SETTINGS_H_
#define TROUPE_CLI_CLUSTER_CLUSTER_SETTINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "plan/device/worker_devices.h"

namespace troupe {

struct ClusterSettings {
  WorkerDevices devices;  // each worker has these
  double detection_seconds = 3;
  int64_t log_bytes = 64 << 20;    // a log of this size is moved aside
  int log_files = 4;               // the number of old logs that are kept
  std::string keep_ended = "all";  // jobs that have ended, as base/keep_ended.h has it
  int coordinator_port = 0;
  int coordinator_metrics_port = 0;
  int coordinator_page_port = 0;  // 0: the coordinator of an earlier version, without a page
  std::vector<int> worker_metrics_ports;  // one per worker
  std::string prometheus;                 // path of the program; empty: without --monitoring
  int prometheus_port = 0;                // kept for the next --monitoring

  int workers() const { return static_cast<int>(worker_metrics_ports.size()); }
  static std::string WorkerName(int index) { return fmt::format("worker-{}", index); }
};

// Returns the path of the file, which a folder without a cluster so far lacks.
std::string ClusterSettingsPath(const std::string& folder);
// NOT_FOUND if `folder` has never had a cluster.
StatusOr<ClusterSettings> ReadClusterSettings(const std::string& folder);
Status WriteClusterSettings(const std::string& folder, const ClusterSettings& settings);

}  // namespace troupe

#endif  // TROUPE_CLI_CLUSTER_CLUSTER_SETTINGS_H_
