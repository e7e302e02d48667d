#include "worker/daemon/incarnation.h"

#include <algorithm>
#include <charconv>

#include "base/durable_write.h"

namespace troupe {
namespace {

constexpr int64_t kIncarnationBytesMax = 64;

}  // namespace

StatusOr<uint64_t> NextIncarnation(FileSystem& files, const std::string& directory,
                                   const std::string& name, uint64_t now) {
  TROUPE_RETURN_IF_ERROR(MakeDirectories(files, directory));
  const std::string path = JoinPath(directory, name + ".incarnation");
  const StatusOr<std::string> text =
      ReadFile(files, path, kIncarnationBytesMax, SymbolicLinks::kRefuse);
  uint64_t last = 0;
  if (text.ok()) {
    const char* const end = text->data() + text->size();
    const auto read = std::from_chars(text->data(), end, last);
    if (read.ec != std::errc() || std::string_view(read.ptr, end) != "\n")
      return DataLoss(
          "{}: contains no number; remove the file, and the worker continues with the time of day",
          path);
  } else if (text.status().code() != StatusCode::kNotFound) {
    return text.status();
  }
  const uint64_t next = std::max(now, last + 1);
  TROUPE_RETURN_IF_ERROR(WriteFileDurably(files, path, AsBytes(fmt::format("{}\n", next))));
  return next;
}

}  // namespace troupe
