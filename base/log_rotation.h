// Log rotation: a process that redirects standard output and error to a file renames that file once
// it is full and continues in a new one. No line is lost or torn.
#ifndef TROUPE_BASE_LOG_ROTATION_H_
#define TROUPE_BASE_LOG_ROTATION_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace troupe {

struct LogLimit {
  int64_t bytes = 64 << 20;  // limit of one file; 0: no rotation
  int files = 4;             // rotated files that are kept: PATH.1, the newest, to PATH.4
};

// A daemon passes the limit on to its rank processes in these environment variables.
inline constexpr char kLogBytesVariable[] = "TROUPE_LOG_BYTES";
inline constexpr char kLogFilesVariable[] = "TROUPE_LOG_FILES";

// From now on, WriteLog rotates the file behind standard error once it has reached the limit, and
// redirects standard output and error to the new file. No effect if standard error is not a regular
// file. Thread-safe.
void LimitLog(const LogLimit& limit);

// The largest limits that flags accept.
inline constexpr int64_t kMostLogBytes = int64_t{1} << 40;
inline constexpr int kMostLogFiles = 100;

// Returns the limit that the environment states, or else the default.
LogLimit LogLimitFromEnvironment();

// Removes PATH.`files`, renames PATH.1 to PATH.2 and so on, and PATH to PATH.1.
Status MoveLogAside(const std::string& path, int files);

// Rotates the log if it is full. WriteLog calls it after each line.
void RotateLogIfFull();

}  // namespace troupe

#endif  // TROUPE_BASE_LOG_ROTATION_H_
