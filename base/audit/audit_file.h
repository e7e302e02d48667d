// Reads an audit log back and checks its chain.
#ifndef TROUPE_BASE_AUDIT_AUDIT_FILE_H_
#define TROUPE_BASE_AUDIT_AUDIT_FILE_H_

#include <string>

#include "base/audit/audit_chain.h"
#include "base/file_system.h"
#include "base/status.h"

namespace troupe {

// The chain of an audit log, up to its first error.
struct AuditedFile {
  AuditHead head;  // the last record before the error
  Status error;    // DATA_LOSS with the number of the line, or OK
};

// Reads the file once. An error is one of reading.
StatusOr<AuditedFile> CheckAuditFile(FileSystem& files, const std::string& path);

}  // namespace troupe

#endif  // TROUPE_BASE_AUDIT_AUDIT_FILE_H_
