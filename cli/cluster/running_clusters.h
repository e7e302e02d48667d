// Finds the local clusters that run on this machine, for commands that name none.
#ifndef TROUPE_CLI_CLUSTER_RUNNING_CLUSTERS_H_
#define TROUPE_CLI_CLUSTER_RUNNING_CLUSTERS_H_

#include <string>
#include <vector>

namespace troupe {

// Returns the absolute paths, as NormalPath makes them, of the data directories of the clusters
// that this user runs, newest first: those whose supervisor holds the lock of its folder, and those
// whose coordinator has outlived it. A cluster whose folder is not seen here is none: it has been
// removed, or is that of a container.
std::vector<std::string> RunningClusters();

}  // namespace troupe

#endif  // TROUPE_CLI_CLUSTER_RUNNING_CLUSTERS_H_
