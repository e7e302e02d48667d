#include "cli/output/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/durable_write.h"
#include "base/security/random_hex.h"
#include "base/text_file.h"

namespace troupe {
namespace {

constexpr size_t kRandomBytes = 4;
constexpr mode_t kNewFileMode = 0644;

// Whether a rename to `path` would replace something else than a regular file.
bool IsSpecial(const std::string& path) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

Status WriteInto(const std::string& path, std::string_view text) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kNewFileMode);
  if (descriptor < 0) return ErrnoStatus(errno, "open " + path);
  const Status written = WriteText(descriptor, text, path);
  if (close(descriptor) != 0 && written.ok()) return ErrnoStatus(errno, "close " + path);
  return written;
}

}  // namespace

Status CheckNamesFile(FileSystem& files, std::string_view flag, const std::string& path) {
  const StatusOr<FileInfo> info = files.Stat(path, SymbolicLinks::kFollow);
  const bool is_folder = info.ok() ? info->kind == FileKind::kDirectory : path.ends_with('/');
  if (!is_folder) return OkStatus();
  return InvalidArgument("{} names a file, and {} is a folder: name a file in it", flag, path);
}

Status WriteOutputFile(FileSystem& files, const std::string& path, std::string_view text) {
  if (path.empty()) return InvalidArgument("the name of the file to write is empty");
  if (IsSpecial(path)) return WriteInto(path, text);
  TROUPE_ASSIGN_OR_RETURN(const std::string random, RandomHex(kRandomBytes));
  const Status replaced =
      WriteFileDurably(files, {path, AsBytes(text), CreateMode::kExclusive},
                       {.suffix = fmt::format(".{}.tmp", random), .removes_temporary = true});
  return replaced.ok() ? replaced : Annotate(replaced, path);
}

}  // namespace troupe
