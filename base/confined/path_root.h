// A directory beneath which paths are opened. The kernel checks every component of a path while it
// opens it (openat2 with RESOLVE_BENEATH and RESOLVE_NO_MAGICLINKS), so a directory that is
// replaced by a symbolic link meanwhile leads nowhere else. A link that stays beneath the root is
// followed, also one with an absolute target. The root itself is trusted and may be a link.
//
// Errors name the path and the root:
//   PERMISSION_DENIED with cause PATH_OUTSIDE_ROOT: the path leaves the root.
//   FAILED_PRECONDITION with cause STORAGE: the root cannot be opened on this host, or its kernel
//     cannot open paths beneath it (Linux before 5.6, or a seccomp filter).
//   Others: as ErrnoStatus.
//
// Thread-safe.
#ifndef TROUPE_BASE_CONFINED_PATH_ROOT_H_
#define TROUPE_BASE_CONFINED_PATH_ROOT_H_

#include <sys/types.h>

#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/file_system.h"
#include "base/status.h"

namespace troupe {

class PathRoot {
 public:
  // `path` is an absolute path. The directory is opened at the first use, and stays open.
  explicit PathRoot(std::string path);

  const std::string& path() const { return path_; }

  // Opens `path`, which begins with the root's path, as open(2) does with these flags and
  // O_CLOEXEC; a created file has these permissions. FAILED_PRECONDITION if it is a symbolic link
  // and the flags have O_NOFOLLOW without O_PATH. `operation` is the first word of an error.
  StatusOr<FileDescriptor> Open(std::string_view operation, const std::string& path, int flags,
                                mode_t permissions);

  // Opens the directory that has the last component of `path`. The root has no place beneath
  // itself.
  StatusOr<PlaceInDirectory> Find(std::string_view operation, const std::string& path);

 private:
  struct Opened {
    int directory;
    std::string real_path;  // without symbolic links; empty if it is not known
  };

  // Opens the root unless it is open.
  StatusOr<Opened> OpenRoot();
  // Returns the part of an absolute path below the root, "." for the root itself.
  std::optional<std::string> Below(const Opened& root, std::string_view path) const;
  // Returns `relative` with its first symbolic link replaced by the link's target; nullopt if it
  // has none or the target is elsewhere. Only the kernel decides whether the result is beneath the
  // root.
  std::optional<std::string> ReplaceLink(const Opened& root, const std::string& relative,
                                         bool last_too) const;
  StatusOr<FileDescriptor> OpenBeneath(std::string_view operation, const std::string& path,
                                       std::string relative, int flags, mode_t permissions);
  Status Escape(std::string_view operation, const std::string& path) const;

  const std::string path_;
  std::mutex mutex_;
  std::optional<FileDescriptor> directory_;  // guarded by mutex_
  std::string real_path_;                    // guarded by mutex_
};

// Whether `status` is the refusal of a path that leaves its root.
bool LeavesRoot(const Status& status);

}  // namespace troupe

#endif  // TROUPE_BASE_CONFINED_PATH_ROOT_H_
