// Decides from the health answers of a process whether it still works. Pure: the time is an
// argument. Not thread-safe.
#ifndef TROUPE_CLI_CLUSTER_LIVENESS_H_
#define TROUPE_CLI_CLUSTER_LIVENESS_H_

#include <algorithm>
#include <chrono>

#include "base/detection_seconds.h"

namespace troupe {

class Liveness {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  // Returns how long a process may be silent, or report that it does not work, before it is
  // replaced.
  static Duration Limit(double detection_seconds) {
    return std::chrono::duration_cast<Duration>(HangLimit(detection_seconds));
  }
  // The limit from the start of a process until its first answer.
  static constexpr std::chrono::seconds kStartLimit{120};

  Liveness() = default;
  Liveness(Time started, Duration limit) : limit_(limit), worked_(started) {}

  // Records an answer at `now` that the process last worked `age` ago.
  void Answered(Time now, Duration age) {
    worked_ = answered_ ? std::max(worked_, now - age) : now - age;
    answered_ = true;
  }
  // Excludes `gap` from the silence: the observer itself was blocked for that time.
  void Excuse(Duration gap) { worked_ += gap; }

  bool has_answered() const { return answered_; }
  Duration Silence(Time now) const { return now - worked_; }
  bool IsHung(Time now) const {
    return Silence(now) > (answered_ ? limit_ : std::max<Duration>(limit_, kStartLimit));
  }

 private:
  Duration limit_{};
  bool answered_ = false;
  Time worked_{};
};

}  // namespace troupe

#endif  // TROUPE_CLI_CLUSTER_LIVENESS_H_
