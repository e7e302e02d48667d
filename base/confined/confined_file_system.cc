#include "base/confined/confined_file_system.h"

#include <fcntl.h>

namespace troupe {

StatusOr<FileDescriptor> ConfinedFileSystem::OpenPath(std::string_view operation,
                                                      const std::string& path, int flags,
                                                      mode_t permissions) {
  return root_.Open(operation, path, flags, permissions);
}

StatusOr<PlaceInDirectory> ConfinedFileSystem::FindPlace(std::string_view operation,
                                                         const std::string& path) {
  return root_.Find(operation, path);
}

StatusOr<FileInfo> ConfinedFileSystem::Stat(const std::string& path, SymbolicLinks links) {
  const int nofollow = links == SymbolicLinks::kRefuse ? O_NOFOLLOW : 0;
  TROUPE_ASSIGN_OR_RETURN(const FileDescriptor file,
                          root_.Open("stat", path, O_PATH | nofollow, 0));
  return InfoOf(file, path);
}

}  // namespace troupe
