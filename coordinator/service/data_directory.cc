#include "coordinator/service/data_directory.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/file_system.h"
#include "base/log.h"
#include "base/security/random_hex.h"
#include "checkpoint/format/folder.h"

namespace troupe {

Status MakeDataDirectory(const std::string& path) {
  PosixFileSystem files;
  const std::string parent = ParentDirectory(path);
  if (files.Stat(path, SymbolicLinks::kFollow).ok()) return MakeDirectories(files, path);
  TROUPE_RETURN_IF_ERROR(MakeDirectories(files, parent));
  if (mkdir(path.c_str(), 0700) != 0) return ErrnoStatus(errno, "mkdir " + path);
  return files.SyncDirectory(parent);
}

StatusOr<std::string> DefaultCheckpointFolder(const std::string& root,
                                              const std::string& data_directory) {
  if (!root.empty()) return root;
  std::error_code unknown;
  const auto catalog = std::filesystem::absolute(data_directory, unknown);
  if (unknown) return ErrnoStatus(unknown.value(), data_directory);
  return (catalog / "checkpoints").lexically_normal().string();
}

std::string CheckpointRootId(const std::string& root) {
  if (root.empty()) return "";
  PosixFileSystem files;
  StatusOr<std::string> id = RandomFolderId();
  if (id.ok()) id = EstablishFolderId(files, root, *id);
  if (id.ok()) return *id;
  LogWarning("coordinator",
             "--checkpoint-root {} gets no identity, without which another directory in its place "
             "is not noticed before a job has run: {}",
             root, ToString(id.status()));
  return "";
}

}  // namespace troupe
