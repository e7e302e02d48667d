// Reminds the readers of a log, at once and then hourly, that a process was started with
// --insecure.
#ifndef TROUPE_BASE_SECURITY_INSECURE_REMINDER_H_
#define TROUPE_BASE_SECURITY_INSECURE_REMINDER_H_

#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"

namespace troupe {

// The initial metadata by which a coordinator with --insecure shows it to its clients.
inline constexpr char kInsecureHeader[] = "troupe-insecure";

// Not thread-safe.
class InsecureReminder {
 public:
  static constexpr Duration kInterval = std::chrono::hours(1);

  // `area` is that of the log's records. Without `insecure` it never reminds.
  InsecureReminder(std::string area, bool insecure) : area_(std::move(area)), insecure_(insecure) {}

  // Logs the warning if it is due. Returns whether it was.
  bool RemindAt(MonotonicTime now);

 private:
  const std::string area_;
  const bool insecure_;
  std::optional<MonotonicTime> last_;
};

}  // namespace troupe

#endif  // TROUPE_BASE_SECURITY_INSECURE_REMINDER_H_
