#include "coordinator/access/audit_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "base/text_file.h"

namespace troupe {
StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(const std::string& path, const Clock& clock) {
  const int descriptor =
      open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  if (descriptor < 0) return ErrnoStatus(errno, fmt::format("open {}", path));
  std::unique_ptr<AuditLog> log(new AuditLog(path, descriptor, clock));
  TROUPE_RETURN_IF_ERROR(log->Recover());
  return log;
}

AuditLog::AuditLog(std::string path, int descriptor, const Clock& clock)
    : path_(std::move(path)), descriptor_(descriptor), clock_(clock) {}

AuditLog::~AuditLog() {
  syncs_.Stop();
  fdatasync(descriptor_);
  close(descriptor_);
}

// Returns the offset behind the last newline of a file of `size` bytes, and sets `tail` to bytes
// before it that contain the last line.
StatusOr<int64_t> AuditLog::EndOfLines(int64_t size, std::string* tail) const {
  // An incomplete line is shorter than a line, and so is the one before.
  constexpr auto kTailBytes = static_cast<int64_t>(2 * kMostAuditLineBytes);
  const int64_t begin = std::max<int64_t>(0, size - kTailBytes);
  tail->resize(static_cast<size_t>(size - begin));
  const ssize_t got = pread(descriptor_, tail->data(), tail->size(), begin);
  if (got < 0) return ErrnoStatus(errno, fmt::format("read {}", path_));
  tail->resize(static_cast<size_t>(got));
  const size_t newline = tail->rfind('\n');
  if (newline == std::string::npos && begin > 0)
    return DataLoss("the audit log {} does not end with a record", path_);
  tail->resize(newline == std::string::npos ? 0 : newline + 1);
  return begin + static_cast<int64_t>(tail->size());
}

Status AuditLog::Recover() {
  struct stat info {};
  if (fstat(descriptor_, &info) != 0) return ErrnoStatus(errno, fmt::format("stat {}", path_));
  if (!S_ISREG(info.st_mode)) return FailedPrecondition("{} is not a regular file", path_);
  std::string tail;
  TROUPE_ASSIGN_OR_RETURN(size_, EndOfLines(info.st_size, &tail));
  if (!tail.empty()) {
    tail.pop_back();
    const size_t before = tail.rfind('\n');
    const auto last = CheckAuditLine(before == std::string::npos ? tail : tail.substr(before + 1));
    if (!last.ok()) {
      return DataLoss(
          "the last record of the audit log {} is damaged: {}; move the file away to begin a new "
          "one",
          path_, Message(last.status()));
    }
    head_ = *last;
  }
  LogInfo("coordinator", "the audit log continues after record {} with the hash {}", head_.sequence,
          head_.hash);
  const int64_t torn = info.st_size - size_;
  if (torn == 0) return OkStatus();
  if (ftruncate(descriptor_, size_) != 0)
    return ErrnoStatus(errno, fmt::format("truncate {}", path_));
  const std::lock_guard lock(mutex_);
  return AppendLocked(
      {.outcome = AuditOutcome::kRepaired,
       .reason = fmt::format("{} bytes of an incomplete record were cut off the end", torn)});
}

Status AuditLog::AppendLocked(AuditRecord record) {
  record.wall_time_ns = clock_.WallNanoseconds();
  AuditHead head = head_;
  const std::string line = AuditLine(record, &head);
  if (const Status written = WriteText(descriptor_, line, path_); !written.ok()) {
    if (ftruncate(descriptor_, size_) != 0)
      LogError("coordinator", "{}", Message(ErrnoStatus(errno, fmt::format("truncate {}", path_))));
    return written;
  }
  head_ = std::move(head);
  size_ += static_cast<int64_t>(line.size());
  // A sync that waits covers this line too.
  syncs_.Run([this] {
    if (fdatasync(descriptor_) != 0)
      LogError("coordinator", "{}", Message(ErrnoStatus(errno, fmt::format("sync {}", path_))));
  });
  return OkStatus();
}

Status AuditLog::Append(AuditRecord record) {
  const std::lock_guard lock(mutex_);
  return AppendLocked(std::move(record));
}

bool AuditLog::AdmitRefusalLocked(std::string_view identity) {
  if (!identity.starts_with("spiffe://") && !identity.starts_with("token:"))
    return strangers_.Admit(clock_.Now());
  const int64_t second = WallSeconds(clock_);
  if (second != std::exchange(refusal_second_, second)) refusals_ = 0;
  return ++refusals_ <= kMostRefusalsPerSecond;
}

void AuditLog::AppendRefusal(std::string identity, std::string rpc, std::string reason) {
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
                                        .reason = std::move(reason)});
  if (appended.ok()) {
    unrecorded_refusals_ = 0;
  } else {
    LogError("coordinator", "a refusal cannot be recorded: {}", Message(appended));
  }
}

}  // namespace troupe
