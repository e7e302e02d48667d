// Finds the local clusters that run on this machine, for commands that name none.
#ifndef TROUPE_CLI_CLUSTER_RUNNING_CLUSTERS_H_
#define TROUPE_CLI_CLUSTER_RUNNING_CLUSTERS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

// Returns DIR if `command_line`, arguments that each end with NUL, is `troupe supervise --data-dir
// DIR`, as `troupe up` starts it, or that with --allow-failpoints; absent otherwise.
std::optional<std::string> SupervisedFolder(std::string_view command_line);

// Returns DIR if `command_line` is that of a coordinator with --data-dir DIR/coordinator, as the
// supervisor of DIR starts it; absent otherwise.
std::optional<std::string> CoordinatedFolder(std::string_view command_line);

// Returns the data directories of the clusters that this user runs, newest first: those that have a
// supervisor, and those whose coordinator has outlived it.
std::vector<std::string> RunningClusters();

}  // namespace troupe

#endif  // TROUPE_CLI_CLUSTER_RUNNING_CLUSTERS_H_
