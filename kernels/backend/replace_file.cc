#include "kernels/backend/replace_file.h"

#include <unistd.h>

#include <chrono>
#include <memory>

namespace troupe::kernels {

Status ReplaceFile(FileSystem& files, const std::string& path, std::string_view bytes) {
  // Another process, possibly on another host, may write the file at the same time.
  const std::string own = fmt::format("{}.{}-{}", path, getpid(),
                                      std::chrono::steady_clock::now().time_since_epoch().count());
  TROUPE_ASSIGN_OR_RETURN(const auto file, files.Create(own, CreateMode::kExclusive));
  Status status = file->Append(AsBytes(bytes));
  if (status.ok()) status = file->Sync();
  if (status.ok()) status = file->Close();
  if (status.ok()) status = files.Rename(own, path);
  if (!status.ok()) files.Remove(own).IgnoreError();
  return status;
}

}  // namespace troupe::kernels
