// The wait of `troupe up` for the processes of its cluster.
#ifndef TROUPE_CLI_CLUSTER_CLUSTER_READY_H_
#define TROUPE_CLI_CLUSTER_CLUSTER_READY_H_

#include <chrono>
#include <functional>
#include <set>
#include <string>

#include "base/status.h"
#include "cli/cluster/cluster_file.h"
#include "cli/cluster/cluster_settings.h"

namespace troupe {

// Returns the names of the workers that are connected with the coordinator at `address`.
using ListWorkers = std::function<StatusOr<std::set<std::string>>(const std::string& address)>;

// Waits until every process of the cluster in `folder` runs, its workers are connected and its
// Prometheus, if any, answers. INTERNAL if that lasts longer than `limit`, or if a process ends
// each time it is started.
StatusOr<ClusterFile> WaitUntilReady(const std::string& folder, const ClusterSettings& settings,
                                     const ListWorkers& list_workers, std::chrono::seconds limit);

}  // namespace troupe

#endif  // TROUPE_CLI_CLUSTER_CLUSTER_READY_H_
