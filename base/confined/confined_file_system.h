// The operating system's files beneath a root. Every operation resolves its path beneath the root
// (base/confined/path_root.h), and has the errors of PathRoot in addition to those of FileSystem.
//
// The root itself can be listed, read and synced, but not created, renamed or removed.
#ifndef TROUPE_BASE_CONFINED_CONFINED_FILE_SYSTEM_H_
#define TROUPE_BASE_CONFINED_CONFINED_FILE_SYSTEM_H_

#include <string>
#include <string_view>
#include <utility>

#include "base/confined/path_root.h"
#include "base/file_system.h"
#include "base/status.h"

namespace troupe {

class ConfinedFileSystem final : public PosixFileSystem {
 public:
  // `root` is an absolute path.
  explicit ConfinedFileSystem(std::string root) : root_(std::move(root)) {}

  StatusOr<FileInfo> Stat(const std::string& path, SymbolicLinks links) override;

 protected:
  StatusOr<FileDescriptor> OpenPath(std::string_view operation, const std::string& path, int flags,
                                    mode_t permissions) override;
  StatusOr<PlaceInDirectory> FindPlace(std::string_view operation,
                                       const std::string& path) override;

 private:
  PathRoot root_;
};

}  // namespace troupe

#endif  // TROUPE_BASE_CONFINED_CONFINED_FILE_SYSTEM_H_
