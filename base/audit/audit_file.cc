#include "base/audit/audit_file.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace troupe {
namespace {

constexpr int64_t kChunkBytes = 1 << 20;
// The most times that a log is checked which has an error and changes meanwhile.
constexpr int kMostChecksOfLog = 5;

// Follows the lines of the file from audited->head to the first error.
Status FollowFile(FileSystem& files, const std::string& path, AuditedFile* audited) {
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file,
                          files.Open(path, SymbolicLinks::kFollow));
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
      audited->error =
          Annotate(FollowAuditLine(text, &audited->head), fmt::format("{}: line {}", path, line));
      if (!audited->error.ok()) return OkStatus();
    }
    unread.erase(0, begin);
    if (unread.size() > kMostAuditLineBytes) break;
  }
  if (!unread.empty()) audited->error = DataLoss("{}: line {} has no end", path, line + 1);
  return OkStatus();
}

// Returns the head that the first record of the file follows; that of a new log if it has none.
StatusOr<AuditHead> HeadBeforeFile(FileSystem& files, const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file,
                          files.Open(path, SymbolicLinks::kFollow));
  std::string begin(static_cast<size_t>(std::min<int64_t>(file->size(), kMostAuditLineBytes)),
                    '\0');
  TROUPE_RETURN_IF_ERROR(file->ReadAt(0, std::as_writable_bytes(std::span(begin))));
  const auto head = HeadBefore(std::string_view(begin).substr(0, begin.find('\n')));
  return head.ok() ? *head : AuditHead();
}

// The state of a log. Its coordinator may append to it, or begin a new file, at any time.
struct Extent {
  std::vector<std::string> full;
  std::optional<int64_t> bytes;  // size of the file that is not full; absent: a crash left none

  bool operator==(const Extent&) const = default;
};

StatusOr<Extent> ExtentOf(FileSystem& files, const std::string& path) {
  Extent extent;
  TROUPE_ASSIGN_OR_RETURN(extent.full, FullAuditFiles(files, path));
  const StatusOr<FileInfo> info = files.Stat(path, SymbolicLinks::kFollow);
  if (info.ok()) extent.bytes = info->size_bytes;
  return extent;
}

StatusOr<AuditedFile> FollowLog(FileSystem& files, const std::string& path, const Extent& extent) {
  std::vector<std::string> paths = extent.full;
  if (paths.empty() || extent.bytes) paths.push_back(path);
  AuditedFile audited;
  for (const std::string& file : paths) {
    TROUPE_RETURN_IF_ERROR(FollowFile(files, file, &audited));
    if (!audited.error.ok()) break;
  }
  audited.is_empty = extent.bytes.value_or(0) == 0;
  return audited;
}

}  // namespace

std::string FullAuditFile(const std::string& path, int64_t last_sequence) {
  return fmt::format("{}.{}", path, last_sequence);
}

StatusOr<std::vector<std::string>> FullAuditFiles(FileSystem& files, const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries,
                          files.List(ParentDirectory(path)));
  const std::string name = path.substr(path.rfind('/') + 1);
  std::vector<int64_t> numbers;
  for (const DirectoryEntry& entry : entries) {
    if (entry.kind == FileKind::kDirectory || !entry.name.starts_with(name + '.')) continue;
    int64_t number = 0;
    std::from_chars(entry.name.data() + name.size() + 1, entry.name.data() + entry.name.size(),
                    number);
    if (number > 0 && FullAuditFile(name, number) == entry.name) numbers.push_back(number);
  }
  std::ranges::sort(numbers);
  std::vector<std::string> paths;
  for (const int64_t number : numbers) paths.push_back(FullAuditFile(path, number));
  return paths;
}

StatusOr<AuditedFile> CheckAuditFile(FileSystem& files, const std::string& path) {
  AuditedFile audited;
  TROUPE_ASSIGN_OR_RETURN(audited.before, HeadBeforeFile(files, path));
  audited.head = audited.before;
  TROUPE_RETURN_IF_ERROR(FollowFile(files, path, &audited));
  audited.is_empty = audited.error.ok() && audited.head == audited.before;
  return audited;
}

StatusOr<AuditedFile> CheckAuditLog(FileSystem& files, const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(Extent extent, ExtentOf(files, path));
  for (int tries = 1;; ++tries) {
    StatusOr<AuditedFile> audited = FollowLog(files, path, extent);
    if (audited.ok() && audited->error.ok()) return audited;
    TROUPE_ASSIGN_OR_RETURN(Extent now, ExtentOf(files, path));
    if (now == extent || tries == kMostChecksOfLog) return audited;
    extent = std::move(now);
  }
}

}  // namespace troupe
