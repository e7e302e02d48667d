#include "cli/checkpoint_folder.h"

#include <filesystem>

namespace troupe {

Status CheckCheckpointFolder(FileSystem& files, const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const FileInfo info, files.Stat(path, SymbolicLinks::kFollow));
  if (info.kind == FileKind::kDirectory) return OkStatus();
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return InvalidArgument("{} is a file: name the folder of the checkpoint, {}", path,
                         folder.empty() ? "." : folder);
}

}  // namespace troupe
