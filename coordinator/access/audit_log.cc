#include "coordinator/access/audit_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "base/audit/audit_file.h"
#include "base/log.h"
#include "base/text_file.h"
#include "coordinator/access/catalog_use.h"

namespace troupe {
namespace {

constexpr int kOpenFlags = O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
constexpr mode_t kOwnerOnly = 0600;

// The end of a file of the log.
struct EndOfFile {
  int64_t lines_bytes = 0;  // bytes of whole lines
  int64_t torn_bytes = 0;   // bytes after them
  std::optional<AuditHead> last;
};

// Returns the last whole line without its newline; empty if there is none. Sets `bytes` to the
// offset behind it. DATA_LOSS if the end of the file has no lines.
StatusOr<std::string> LastLineOf(int file, int64_t size, const std::string& path, int64_t* bytes) {
  // An incomplete line is shorter than a line, and so is the one before.
  constexpr auto kTailBytes = static_cast<int64_t>(2 * kMostAuditLineBytes);
  const int64_t begin = std::max<int64_t>(0, size - kTailBytes);
  std::string tail(static_cast<size_t>(size - begin), '\0');
  const ssize_t got = pread(file, tail.data(), tail.size(), begin);
  if (got < 0) return ErrnoStatus(errno, fmt::format("read {}", path));
  tail.resize(static_cast<size_t>(got));
  const size_t newline = tail.rfind('\n');
  if (newline == std::string::npos && begin > 0)
    return DataLoss("the audit log {} does not end with a record", path);
  tail.resize(newline == std::string::npos ? 0 : newline);
  *bytes = newline == std::string::npos ? 0 : begin + static_cast<int64_t>(newline) + 1;
  const size_t before = tail.rfind('\n');
  return before == std::string::npos ? tail : tail.substr(before + 1);
}

StatusOr<EndOfFile> ReadEnd(int file, const std::string& path) {
  struct stat info {};
  if (fstat(file, &info) != 0) return ErrnoStatus(errno, fmt::format("stat {}", path));
  if (!S_ISREG(info.st_mode)) return FailedPrecondition("{} is not a regular file", path);
  EndOfFile end;
  TROUPE_ASSIGN_OR_RETURN(const std::string line,
                          LastLineOf(file, info.st_size, path, &end.lines_bytes));
  end.torn_bytes = info.st_size - end.lines_bytes;
  if (end.lines_bytes == 0) return end;
  const auto last = CheckAuditLine(line);
  if (!last.ok()) {
    return DataLoss(
        "the last record of the audit log {} is damaged: {}; move the file away to begin a new one",
        path, Message(last.status()));
  }
  end.last = *last;
  return end;
}

}  // namespace

StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(const std::string& path, const Clock& clock,
                                                   int64_t most_file_bytes) {
  PosixFileSystem files;
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> full, FullAuditFiles(files, path));
  const bool is_absent =
      files.Stat(path, SymbolicLinks::kRefuse).status().code() == StatusCode::kNotFound;
  FileDescriptor file(open(path.c_str(), kOpenFlags, kOwnerOnly));
  if (file.get() < 0) {
    const bool no_file = errno == EISDIR || errno == ELOOP || errno == ENXIO;
    return no_file ? FailedPrecondition("open {}: is not a regular file", path)
                   : ErrnoStatus(errno, fmt::format("open {}", path));
  }
  std::unique_ptr<AuditLog> log(
      new AuditLog(path, std::move(file), clock, most_file_bytes, is_absent && full.empty()));
  TROUPE_RETURN_IF_ERROR(log->Recover(is_absent));
  return log;
}

AuditLog::AuditLog(std::string path, FileDescriptor file, const Clock& clock,
                   int64_t most_file_bytes, bool is_new)
    : path_(std::move(path)),
      clock_(clock),
      most_file_bytes_(most_file_bytes),
      is_new_(is_new),
      file_(std::make_shared<const FileDescriptor>(std::move(file))),
      rotate_at_(most_file_bytes) {}

AuditLog::~AuditLog() {
  syncs_.Stop();
  fdatasync(file_->get());
}

bool AuditLog::is_empty() const {
  const std::lock_guard lock(mutex_);
  return head_ == AuditHead();
}

StatusOr<AuditHead> AuditLog::HeadOfFullFiles() const {
  PosixFileSystem files;
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> full, FullAuditFiles(files, path_));
  if (full.empty()) return AuditHead();
  const std::string& path = full.back();
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.get() < 0) return ErrnoStatus(errno, fmt::format("open {}", path));
  TROUPE_ASSIGN_OR_RETURN(const EndOfFile end, ReadEnd(file.get(), path));
  if (!end.last || end.torn_bytes > 0)
    return DataLoss("the audit log {} does not end with a record; move it away", path);
  return *end.last;
}

Status AuditLog::Recover(bool was_absent) {
  const std::lock_guard lock(mutex_);
  TROUPE_ASSIGN_OR_RETURN(const EndOfFile end, ReadEnd(file_->get(), path_));
  size_ = end.lines_bytes;
  std::vector<std::string> repairs;
  if (end.last) {
    head_ = *end.last;
  } else {
    TROUPE_ASSIGN_OR_RETURN(head_, HeadOfFullFiles());
    // A full file is followed by the record for which there was no room in it.
    if (head_ != AuditHead()) {
      repairs.push_back(fmt::format(
          "records after {} may be missing: the full files end there, and the next file "
          "{}, as after a change to a new file that was cut short",
          head_.sequence, was_absent ? "was not there" : "had no record"));
    }
  }
  LogInfo("coordinator", "the audit log continues after record {} with the hash {}", head_.sequence,
          head_.hash);
  if (end.torn_bytes > 0) {
    if (ftruncate(file_->get(), size_) != 0)
      return ErrnoStatus(errno, fmt::format("truncate {}", path_));
    repairs.push_back(
        fmt::format("{} bytes of an incomplete record were cut off the end", end.torn_bytes));
  }
  if (repairs.empty()) return OkStatus();
  const std::string reason = fmt::format("{}", fmt::join(repairs, "; "));
  LogWarning("coordinator", "{}: {}", path_, reason);
  return AppendLocked({.outcome = AuditOutcome::kRepaired, .reason = reason});
}

// After a crash at any point of it, Recover finds the last record in `path_` or, if that file is
// absent or empty, in the newest full file. It cannot distinguish a file that the crash left absent
// from one that somebody removed.
Status AuditLog::RotateLocked() {
  // The new file may be durable before the end of this one is.
  if (fdatasync(file_->get()) != 0) return ErrnoStatus(errno, fmt::format("sync {}", path_));
  const std::string full = FullAuditFile(path_, head_.sequence);
  struct stat info {};
  if (lstat(full.c_str(), &info) == 0) return AlreadyExists("{} exists", full);
  PosixFileSystem files;
  TROUPE_RETURN_IF_ERROR(files.Rename(path_, full));
  FileDescriptor file(open(path_.c_str(), kOpenFlags | O_EXCL, kOwnerOnly));
  if (file.get() < 0) {
    const Status failed = ErrnoStatus(errno, fmt::format("open {}", path_));
    const Status undone = files.Rename(full, path_);
    return undone.ok() ? failed : Annotate(failed, Message(undone));
  }
  file_ = std::make_shared<const FileDescriptor>(std::move(file));
  size_ = 0;
  return files.SyncDirectory(ParentDirectory(path_));
}

void AuditLog::Sync() {
  std::shared_ptr<const FileDescriptor> file;
  {
    const std::lock_guard lock(mutex_);
    file = file_;
  }
  if (fdatasync(file->get()) != 0)
    LogError("coordinator", "{}", Message(ErrnoStatus(errno, fmt::format("sync {}", path_))));
}

Status AuditLog::AppendLocked(AuditRecord record) {
  if (size_ >= rotate_at_) {
    const Status rotated = RotateLocked();
    if (!rotated.ok()) LogError("coordinator", "audit log: {}", Message(rotated));
    // A rotation that failed is tried again after as many bytes.
    rotate_at_ = size_ + most_file_bytes_;
  }
  record.wall_time_ns = clock_.WallNanoseconds();
  AuditHead head = head_;
  const std::string line = AuditLine(record, &head);
  if (const Status written = WriteText(file_->get(), line, path_); !written.ok()) {
    if (ftruncate(file_->get(), size_) != 0)
      LogError("coordinator", "{}", Message(ErrnoStatus(errno, fmt::format("truncate {}", path_))));
    return written;
  }
  head_ = std::move(head);
  size_ += static_cast<int64_t>(line.size());
  // A sync that waits covers this line too.
  syncs_.Run([this] { Sync(); });
  return OkStatus();
}

Status AuditLog::Append(AuditRecord record) {
  const std::lock_guard lock(mutex_);
  return AppendLocked(std::move(record));
}

bool AuditLog::AdmitRefusalLocked(std::string_view identity) {
  // A token that is only claimed has no name behind its id.
  const bool is_token =
      identity.starts_with("token:") && identity.find(' ') != std::string_view::npos;
  if (!identity.starts_with("spiffe://") && !is_token) return strangers_.Admit(clock_.Now());
  const int64_t second = WallSeconds(clock_);
  if (second != std::exchange(refusal_second_, second)) refusals_ = 0;
  return ++refusals_ <= kMostRefusalsPerSecond;
}

void AuditLog::AppendRefusal(std::string identity, std::string rpc, std::string reason,
                             std::string target) {
  const std::lock_guard lock(mutex_);
  if (!AdmitRefusalLocked(identity)) {
    ++unrecorded_refusals_;
    return;
  }
  if (unrecorded_refusals_ > 0)
    reason += fmt::format(" ({} refusals before this one are not recorded)", unrecorded_refusals_);
  const Status appended = AppendLocked({.identity = std::move(identity),
                                        .rpc = std::move(rpc),
                                        .outcome = AuditOutcome::kDenied,
                                        .target = std::move(target),
                                        .reason = std::move(reason)});
  if (appended.ok()) {
    unrecorded_refusals_ = 0;
  } else {
    LogError("coordinator", "a refusal cannot be recorded: {}", Message(appended));
  }
}

StatusOr<std::unique_ptr<AuditLog>> OpenAuditLogOf(const Store& catalog, const std::string& path,
                                                   const Clock& clock) {
  TROUPE_ASSIGN_OR_RETURN(const CatalogUse use, ReadCatalogUse(catalog));
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<AuditLog> log, AuditLog::Open(path, clock));
  const bool is_missing = (log->is_new() && use.is_used) || (log->is_empty() && use.has_calls);
  if (!is_missing) return log;
  const std::string reason =
      fmt::format("earlier records are missing: the catalog {}, and the audit log {}",
                  use.has_calls ? "has what calls changed" : "was used before",
                  log->is_new() ? "was not there" : "was empty");
  LogWarning("coordinator", "{}: {}", path, reason);
  TROUPE_RETURN_IF_ERROR(log->Append({.outcome = AuditOutcome::kRepaired, .reason = reason}));
  return log;
}

}  // namespace troupe
