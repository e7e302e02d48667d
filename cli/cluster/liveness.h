// Whether a process of a local cluster still works, from the answers that it gives. Pure: time
// comes in as an argument. Not thread-safe.
#ifndef TROUPE_CLI_CLUSTER_LIVENESS_H_
#define TROUPE_CLI_CLUSTER_LIVENESS_H_

#include <algorithm>
#include <chrono>

namespace troupe {

class Liveness {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  // How long a process may give no answer, or one that says that it does not work, before it is
  // replaced: five times the time after which the cluster gives up a silent worker, at least 10 s.
  static Duration Limit(double detection_seconds) {
    return std::chrono::duration_cast<Duration>(
        std::chrono::duration<double>(std::max(10.0, 5 * detection_seconds)));
  }
  // From its start until its first answer.
  static constexpr std::chrono::seconds kStartLimit{120};

  Liveness() = default;
  Liveness(Time started, Duration limit) : limit_(limit), worked_(started) {}

  // It answered `now` that it last worked so long ago.
  void Answered(Time now, Duration age) {
    worked_ = answered_ ? std::max(worked_, now - age) : now - age;
    answered_ = true;
  }
  // Nobody looked for so long, because the one who looks stood still: that is not its fault.
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
