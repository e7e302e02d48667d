// Finds the local clusters that run on this machine, for commands that name none.
#ifndef TROUPE_CLI_CLUSTER_RUNNING_CLUSTERS_H_
#define TROUPE_CLI_CLUSTER_RUNNING_CLUSTERS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

// Returns DIR if `command_line`, arguments that each end with NUL, is `troupe supervise --data-dir
// DIR`, as `troupe up` starts it; absent otherwise.
std::optional<std::string> SupervisedFolder(std::string_view command_line);

// Returns the data directories of the clusters whose supervisors this user runs, newest first.
std::vector<std::string> RunningClusters();

}  // namespace troupe

#endif  // TROUPE_CLI_CLUSTER_RUNNING_CLUSTERS_H_
