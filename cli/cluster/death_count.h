// Detects a process of a local cluster that cannot stay alive and that the supervisor restarts
// again and again.
#ifndef TROUPE_CLI_CLUSTER_DEATH_COUNT_H_
#define TROUPE_CLI_CLUSTER_DEATH_COUNT_H_

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/status.h"
#include "cli/cluster/cluster_file.h"

namespace troupe {

class DeathCount {
 public:
  explicit DeathCount(std::string folder) : folder_(std::move(folder)) {}

  // INTERNAL with the last log line, for Prometheus lines, of a process that has been seen with
  // kTries different pids.
  Status Look(const ClusterFile& cluster);

 private:
  static constexpr size_t kTries = 4;

  Status Look(const std::string& name, const ProcessId& process, size_t most_lines);

  const std::string folder_;
  std::map<std::string, std::set<pid_t>> seen_;
};

}  // namespace troupe

#endif  // TROUPE_CLI_CLUSTER_DEATH_COUNT_H_
