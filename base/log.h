// Structured logs on stderr, one line per record: `time level area key=value … message`. The time
// is UTC, "2031-05-04T12:00:00.000Z", so that records of several hosts can be sorted. No text of
// others begins another record, because control characters are shown as PrintableLine does.
// Thread-safe. The process-wide context (role, job, rank, epoch) is set once by main and on epoch
// changes.
#ifndef TROUPE_BASE_LOG_H_
#define TROUPE_BASE_LOG_H_

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace troupe {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kNone };

// Drops records below `level`; kNone drops all. The initial level is info.
void SetLogLevel(LogLevel level);

// Sets the text that follows the level on every line of this process, such as "worker=worker-0
// job=a rank=3 epoch=2".
void SetLogContext(std::string context);

void WriteLog(LogLevel level, std::string_view area, std::string_view message);

template <typename... Args>
void LogInfo(std::string_view area, fmt::format_string<Args...> format, Args&&... args) {
  WriteLog(LogLevel::kInfo, area, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void LogWarning(std::string_view area, fmt::format_string<Args...> format, Args&&... args) {
  WriteLog(LogLevel::kWarning, area, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void LogError(std::string_view area, fmt::format_string<Args...> format, Args&&... args) {
  WriteLog(LogLevel::kError, area, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace troupe

#endif  // TROUPE_BASE_LOG_H_
