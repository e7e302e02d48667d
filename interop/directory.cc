#include "interop/directory.h"

namespace troupe {

Status MakeEmptyDirectory(FileSystem& files, const std::string& path) {
  const auto info = files.Stat(path, SymbolicLinks::kFollow);
  if (info.status().code() == StatusCode::kNotFound) return MakeDirectories(files, path);
  TROUPE_RETURN_IF_ERROR(info.status());
  if (info->kind != FileKind::kDirectory) return AlreadyExists("{}: already exists", path);
  TROUPE_ASSIGN_OR_RETURN(const auto entries, files.List(path));
  if (entries.empty()) return OkStatus();
  return AlreadyExists("{}: already exists and contains {}", path, entries[0].name);
}

}  // namespace troupe
