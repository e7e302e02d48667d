// DIR/cluster.json: the processes of a local cluster, for users, scripts and `troupe down`.
// Replaced atomically.
#ifndef TROUPE_CLI_CLUSTER_CLUSTER_FILE_H_
#define TROUPE_CLI_CLUSTER_CLUSTER_FILE_H_

#include <string>
#include <vector>

#include "base/status.h"
#include "cli/cluster/process_id.h"

namespace troupe {

struct ClusterFile {
  struct Worker {
    std::string name;
    ProcessId process;
    std::string metrics;  // URL
  };
  std::string folder;  // that the processes run in; empty in files of earlier versions
  std::string coordinator_address;
  std::string coordinator_metrics;
  ProcessId coordinator;
  ProcessId supervisor;
  std::vector<Worker> workers;
};

std::string ToJsonText(const ClusterFile& cluster);
// INVALID_ARGUMENT if `text` does not have the form that ToJsonText writes.
StatusOr<ClusterFile> ParseClusterFile(const std::string& text);

// NOT_FOUND if no cluster is running in `folder`.
StatusOr<ClusterFile> ReadClusterFile(const std::string& folder);
// States `folder` in it.
Status WriteClusterFile(const std::string& folder, const ClusterFile& cluster);

}  // namespace troupe

#endif  // TROUPE_CLI_CLUSTER_CLUSTER_FILE_H_
