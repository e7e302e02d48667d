#include "base/audit/audit_file.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string_view>

namespace troupe {
namespace {

constexpr int64_t kChunkBytes = 1 << 20;

}  // namespace

StatusOr<AuditedFile> CheckAuditFile(FileSystem& files, const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file,
                          files.Open(path, SymbolicLinks::kFollow));
  AuditedFile audited;
  int64_t line = 0;
  std::string unread;  // bytes after the last newline that was read
  for (int64_t offset = 0; offset < file->size();) {
    const int64_t bytes = std::min(kChunkBytes, file->size() - offset);
    const size_t before = unread.size();
    unread.resize(before + static_cast<size_t>(bytes));
    TROUPE_RETURN_IF_ERROR(
        file->ReadAt(offset, std::as_writable_bytes(std::span(unread).subspan(before))));
    offset += bytes;
    size_t begin = 0;
    for (size_t end = 0; (end = unread.find('\n', begin)) != std::string::npos; begin = end + 1) {
      ++line;
      const std::string_view text = std::string_view(unread).substr(begin, end - begin);
      audited.error = Annotate(FollowAuditLine(text, &audited.head), fmt::format("line {}", line));
      if (!audited.error.ok()) return audited;
    }
    unread.erase(0, begin);
    if (unread.size() > kMostAuditLineBytes) break;
  }
  if (!unread.empty()) audited.error = DataLoss("line {} has no end", line + 1);
  return audited;
}

}  // namespace troupe
