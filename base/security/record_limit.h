// Bounds how often the same place of a library writes to the log: a peer that is refused all the
// time causes the same records all the time. Pure; not thread-safe.
#ifndef TROUPE_BASE_SECURITY_RECORD_LIMIT_H_
#define TROUPE_BASE_SECURITY_RECORD_LIMIT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"

namespace troupe {

class RecordLimit {
 public:
  static constexpr int kMostInWindow = 3;
  static constexpr Duration kWindow = std::chrono::minutes(1);

  // Returns how many records of this place, a file and a line, were dropped since its last one;
  // nothing if this one is to be dropped. REQUIRES: `now` does not decrease, and there are few
  // places.
  std::optional<int64_t> Admit(const std::string& file, int line, MonotonicTime now);

 private:
  struct Place {
    MonotonicTime window_begin;
    int admitted = 0;     // in the window
    int64_t dropped = 0;  // since the last record that was admitted
  };
  std::map<std::pair<std::string, int>, Place> places_;
};

}  // namespace troupe

#endif  // TROUPE_BASE_SECURITY_RECORD_LIMIT_H_
