// The folders of the local clusters that `troupe up` has started, newest first: a text file, an
// absolute path in a line. It belongs to a user on one host: `clusters-HOST`, as several hosts may
// share the home directory.
#ifndef TROUPE_CLI_CLUSTER_CLUSTER_INDEX_H_
#define TROUPE_CLI_CLUSTER_CLUSTER_INDEX_H_

#include <optional>
#include <string>
#include <string_view>

#include "base/file_system.h"
#include "base/status.h"

namespace troupe {

// Returns the folder of Troupe's state of this user: that of XDG_STATE_HOME, or else of HOME in the
// environment. Absent if neither is an absolute path. INVALID_ARGUMENT of CheckText.
StatusOr<std::optional<std::string>> StateFolder();
// The same for values of the two. Pure.
std::optional<std::string> StateFolderOf(const std::optional<std::string>& xdg_state_home,
                                         const std::optional<std::string>& home);

// Returns the text of an index with `folder` in front, once, and at most 64 folders. Pure.
std::string IndexWith(const std::string& folder, std::string_view index);

// Returns the path of the index of this host.
std::string IndexPath(const std::string& state);

// Puts `folder`, an absolute path, in front of the index in `state`, which is made if it does not
// exist. Errors of the file system; DEADLINE_EXCEEDED if another process has locked the index for
// 5 s.
Status AddToIndex(FileSystem& files, const std::string& state, const std::string& folder);

// Returns the newest folder of the index in `state` that is there and has the settings of a
// cluster, both of this user and such that not everybody may write them; if there is none, the
// folder `default` in `state`, which need not exist.
// INVALID_ARGUMENT if the index has a line that is not an absolute path.
StatusOr<std::string> NewestFolder(FileSystem& files, const std::string& state);

}  // namespace troupe

#endif  // TROUPE_CLI_CLUSTER_CLUSTER_INDEX_H_
