#include "base/security/insecure_reminder.h"

#include "base/log.h"

namespace troupe {

bool InsecureReminder::RemindAt(MonotonicTime now) {
  if (!insecure_ || (last_ && now - *last_ < kInterval)) return false;
  last_ = now;
  LogWarning(area_,
             "runs with --insecure: without TLS, whoever reaches its port has every role, and "
             "others on the network can read and change what it sends");
  return true;
}

}  // namespace troupe
