// Stops a local cluster, whatever state its supervisor and its cluster.json are in.
#ifndef TROUPE_CLI_CLUSTER_CLUSTER_STOP_H_
#define TROUPE_CLI_CLUSTER_CLUSTER_STOP_H_

#include <string>

#include "base/status.h"
#include "cli/cluster/cluster_file.h"

namespace troupe {

// Returns cluster.json. A new supervisor writes it shortly after its start: if one is alive, waits
// until the file names it, for at most 20 s. NOT_FOUND if no cluster is running.
StatusOr<ClusterFile> ReadCurrentFile(const std::string& folder);

// Stops every process of the cluster in `folder`; those that do not end in time are killed.
// NOT_FOUND if none is running.
Status StopCluster(const std::string& folder);

}  // namespace troupe

#endif  // TROUPE_CLI_CLUSTER_CLUSTER_STOP_H_
