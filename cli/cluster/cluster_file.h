// DIR/cluster.json: the processes of a local cluster, for users, scripts and `troupe down`.
// DIR/prometheus_targets.json: the metrics addresses of these processes, in the form of
// Prometheus's file_sd_configs. Both are replaced atomically.
#ifndef TROUPE_CLI_CLUSTER_CLUSTER_FILE_H_
#define TROUPE_CLI_CLUSTER_CLUSTER_FILE_H_

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/cluster/host_id.h"
#include "cli/cluster/process_id.h"

namespace troupe {

struct ClusterFile {
  struct Worker {
    std::string name;
    ProcessId process;
    std::string metrics;  // URL
  };
  struct Prometheus {
    ProcessId process;
    std::string url;
  };
  std::string folder;  // that the processes run in; empty in files of earlier versions
  HostId host;         // that the processes run on; empty in files of earlier versions
  std::string coordinator_address;
  std::string coordinator_metrics;
  std::string coordinator_page;  // URL; empty: it serves none, as earlier versions
  ProcessId coordinator;
  ProcessId supervisor;
  std::vector<Worker> workers;
  std::optional<Prometheus> prometheus;  // with --monitoring only
};

// The coordinator, the workers and Prometheus, without the supervisor.
std::vector<ProcessId> ProcessesOf(const ClusterFile& cluster);

std::string ToJsonText(const ClusterFile& cluster);
// The content of prometheus_targets.json.
std::string ToTargetsText(const ClusterFile& cluster);
// INVALID_ARGUMENT with the key if `text` does not have the form that ToJsonText writes.
StatusOr<ClusterFile> ParseClusterFile(const std::string& text);

// NOT_FOUND if no cluster is running in `folder`; INVALID_ARGUMENT with file, key and remedy if the
// file is damaged; FAILED_PRECONDITION if the file is that of another host, or a copy of that of a
// cluster that is running, so that nothing may be done in `folder`.
StatusOr<ClusterFile> ReadClusterFile(const std::string& folder);
// Writes both files, and states `folder` and this host in the first.
Status WriteClusterFile(const std::string& folder, const ClusterFile& cluster);
// Removes both files.
Status RemoveClusterFile(const std::string& folder);

}  // namespace troupe

#endif  // TROUPE_CLI_CLUSTER_CLUSTER_FILE_H_
