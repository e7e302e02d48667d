// Recognizes the processes of local clusters by their command lines, as /proc has them: arguments
// that each end with NUL. Pure.
#ifndef TROUPE_CLI_CLUSTER_PROCESS_FOLDER_H_
#define TROUPE_CLI_CLUSTER_PROCESS_FOLDER_H_

#include <optional>
#include <string>
#include <string_view>

namespace troupe {

// Returns DIR if `command_line` is `troupe supervise --data-dir DIR`, as `troupe up` starts it, or
// that with --allow-failpoints; absent otherwise.
std::optional<std::string> SupervisedFolder(std::string_view command_line);

// Returns DIR if `command_line` is that of a coordinator with --data-dir DIR/coordinator, as the
// supervisor of DIR starts it; absent otherwise.
std::optional<std::string> CoordinatedFolder(std::string_view command_line);

}  // namespace troupe

#endif  // TROUPE_CLI_CLUSTER_PROCESS_FOLDER_H_
