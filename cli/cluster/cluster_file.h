// DIR/cluster.json: the processes of a local cluster, for people, scripts and `troupe down`. Replaced atomically.
#ifndef TROUPE_CLI_CLUSTER_CLUSTER_FILE_H_
#define TROUPE_CLI_CLUSTER_CLUSTER_FILE_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace troupe {

// A process and when it started, so that another process with a recycled number is never taken for it.
struct ProcessId {
  pid_t pid = 0;
  uint64_t start_ticks = 0;  // since boot; field 22 of /proc/PID/stat
  bool operator==(const ProcessId&) const = default;
};

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
// INVALID_ARGUMENT where `text` is not what ToJsonText writes.
StatusOr<ClusterFile> ParseClusterFile(const std::string& text);

// NOT_FOUND where no cluster is up in `folder`, FAILED_PRECONDITION where the file is a copy: the
// processes that it names live, and run in another folder.
StatusOr<ClusterFile> ReadClusterFile(const std::string& folder);
// States `folder` in it.
Status WriteClusterFile(const std::string& folder, const ClusterFile& cluster);

}  // namespace troupe

#endif  // TROUPE_CLI_CLUSTER_CLUSTER_FILE_H_
