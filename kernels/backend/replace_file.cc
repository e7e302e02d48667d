#include "kernels/backend/replace_file.h"

#include <unistd.h>

#include <chrono>

#include "base/durable_write.h"

namespace troupe::kernels {

Status ReplaceFile(FileSystem& files, const std::string& path, std::string_view bytes) {
  // Another process, possibly on another host, may write the file at the same time.
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return WriteFileDurably(
      files, {path, AsBytes(bytes), CreateMode::kExclusive},
      {.suffix = fmt::format(".{}-{}", getpid(), now), .removes_temporary = true});
}

}  // namespace troupe::kernels
