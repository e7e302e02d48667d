// The files of an audit log, and the check of their chain. Records are appended to the file PATH.
// When it is full it becomes PATH.N, where N is the sequence number of its last record, and the
// chain continues in a new file PATH.
#ifndef TROUPE_BASE_AUDIT_AUDIT_FILE_H_
#define TROUPE_BASE_AUDIT_AUDIT_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/audit/audit_chain.h"
#include "base/file_system.h"
#include "base/status.h"

namespace troupe {

// Returns the path of the full file of the log `path` with this last record.
std::string FullAuditFile(const std::string& path, int64_t last_sequence);

// Returns the paths of the full files of the log `path`, oldest first.
StatusOr<std::vector<std::string>> FullAuditFiles(FileSystem& files, const std::string& path);

// A chain, up to its first error.
struct AuditedFile {
  AuditHead before;  // the head that its first record follows
  AuditHead head;    // the last record before the error
  Status error;      // DATA_LOSS with file and line, or OK
  // Whether the file itself has no record. That of a log may be absent behind its full files.
  bool is_empty = false;
};

// Checks one file, which may begin with any record. An error is one of reading.
StatusOr<AuditedFile> CheckAuditFile(FileSystem& files, const std::string& path);

// Checks the files of the log `path`, which must begin with its first record. An error is one of
// reading. A coordinator may write the log meanwhile: one that has an error and has changed is
// checked again.
StatusOr<AuditedFile> CheckAuditLog(FileSystem& files, const std::string& path);

}  // namespace troupe

#endif  // TROUPE_BASE_AUDIT_AUDIT_FILE_H_
