// The audit log of a coordinator: a file of lines that are chained by their hashes
// (base/audit/audit_chain.h), to which the calls that change something and all refusals are
// appended. The chain goes on in a new file when one is full (base/audit/audit_file.h); nothing is
// deleted.
//
// A record is in the file when Append returns, and on the disk within milliseconds, so that gRPC's
// threads wait for a disk only when a file is full; a failure of the machine's power can lose the
// records of that time.
#ifndef TROUPE_COORDINATOR_ACCESS_AUDIT_LOG_H_
#define TROUPE_COORDINATOR_ACCESS_AUDIT_LOG_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "base/audit/audit_chain.h"
#include "base/clock.h"
#include "base/file_system.h"
#include "base/serial_executor.h"
#include "base/status.h"
#include "base/store/store.h"
#include "coordinator/access/failure_limit.h"

namespace troupe {

// Thread-safe.
class AuditLog {
 public:
  // Refusals of known identities that are recorded in a second, and refusals of others in a minute.
  // Further ones are counted only, so that a caller who is refused all the time cannot fill the
  // disk, and a stranger cannot hide the refusals of a user.
  static constexpr int64_t kMostRefusalsPerSecond = 100;
  static constexpr size_t kMostRefusalsOfStrangersPerMinute = 60;

  // A file with this many bytes is full.
  static constexpr int64_t kMostFileBytes = int64_t{64} << 20;

  // Continues the log in `path`, or creates it, readable by its owner only. An incomplete last line
  // is cut, with a record and a warning of that. There is such a record too if full files are there
  // and `path` is absent or has no record: the newest records may then be missing. DATA_LOSS if the
  // last complete line is damaged, FAILED_PRECONDITION if `path` is a link or another thing than a
  // file. `clock` outlives the log.
  static StatusOr<std::unique_ptr<AuditLog>> Open(const std::string& path, const Clock& clock,
                                                  int64_t most_file_bytes = kMostFileBytes);
  ~AuditLog();

  // Whether Open has created the log: no file of it was there.
  bool is_new() const { return is_new_; }
  // Whether no record was ever appended.
  bool is_empty() const;

  // Appends `record` with the time of the clock. On an error the log is as before.
  Status Append(AuditRecord record);

  // Appends a refusal, of a call or of a path of `target`, unless there were too many. `identity`
  // is that of a user or worker (AuditNameOf), or anything else for a stranger, as what
  // ClaimedToken returns. A failure is reported in the log of the process.
  void AppendRefusal(std::string identity, std::string rpc, std::string reason,
                     std::string target = "");

 private:
  AuditLog(std::string path, FileDescriptor file, const Clock& clock, int64_t most_file_bytes,
           bool is_new);
  // Finds the last record, and appends one of what was repaired. `was_absent`: Open has created the
  // file.
  Status Recover(bool was_absent);
  // Returns the last record of the newest full file; the default if there is none.
  StatusOr<AuditHead> HeadOfFullFiles() const;
  Status AppendLocked(AuditRecord record);
  // Continues in a new file. On an error the log goes on in the same one.
  Status RotateLocked();
  void Sync();
  // Whether a refusal of this identity is recorded; counts it.
  bool AdmitRefusalLocked(std::string_view identity);

  const std::string path_;
  const Clock& clock_;
  const int64_t most_file_bytes_;
  const bool is_new_;
  mutable std::mutex mutex_;  // guards the members below
  std::shared_ptr<const FileDescriptor> file_;
  int64_t rotate_at_;  // size from which a file is full
  AuditHead head_;
  int64_t size_ = 0;            // bytes of whole lines in the file
  int64_t refusal_second_ = 0;  // the second of the wall clock that `refusals_` is about
  int64_t refusals_ = 0;
  FailureLimit strangers_{kMostRefusalsOfStrangersPerMinute, std::chrono::minutes(1)};
  int64_t unrecorded_refusals_ = 0;
  SerialExecutor syncs_{1};
};

// Opens the log as AuditLog::Open does. If it is new although the catalog was used before, or has
// no record although the catalog has what calls changed, which all began with one, its first record
// and a warning state that earlier ones are missing.
StatusOr<std::unique_ptr<AuditLog>> OpenAuditLogOf(const Store& catalog, const std::string& path,
                                                   const Clock& clock);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_ACCESS_AUDIT_LOG_H_
