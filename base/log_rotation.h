// Logs of bounded size: a process whose standard output and error go to a file moves that file
// aside once it is full and goes on in a new one. No line is lost or torn.
#ifndef TROUPE_BASE_LOG_ROTATION_H_
#define TROUPE_BASE_LOG_ROTATION_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace troupe {

struct LogLimit {
  int64_t bytes = 64 << 20;  // of one file; 0: it is never moved aside
  int files = 4;             // that were moved aside and are kept: PATH.1, the newest, to PATH.4
};

// Environment variables by which a daemon passes the limit on to its rank processes.
inline constexpr char kLogBytesVariable[] = "TROUPE_LOG_BYTES";
inline constexpr char kLogFilesVariable[] = "TROUPE_LOG_FILES";

// From now on WriteLog moves the file to which standard error goes aside once it has reached the
// limit; what went to standard output and error goes to the new one. No effect where standard error
// is no regular file. Thread-safe.
void LimitLog(const LogLimit& limit);

// Parses the limit of a flag: a whole number from 0 to `most`, else INVALID_ARGUMENT naming the
// flag.
inline constexpr int kMostLogFiles = 100;
StatusOr<int64_t> ParseLogNumber(std::string_view flag, std::string_view value, int64_t most);

// The limit that the environment states, else the default.
LogLimit LogLimitFromEnvironment();

// PATH.`files` goes, PATH.1 becomes PATH.2 and so on, PATH becomes PATH.1.
Status MoveLogAside(const std::string& path, int files);

// Moves the log aside if it is full. WriteLog calls it after each line.
void RotateLogIfFull();

}  // namespace troupe

#endif  // TROUPE_BASE_LOG_ROTATION_H_
