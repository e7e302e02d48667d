// The range of --detection-seconds, from which every time limit of a cluster derives, and the limit
// after which a process that does not work counts as hung.
#ifndef TROUPE_BASE_DETECTION_SECONDS_H_
#define TROUPE_BASE_DETECTION_SECONDS_H_

#include <algorithm>
#include <chrono>

namespace troupe {

inline constexpr double kLeastDetectionSeconds = 0.1;
inline constexpr double kMostDetectionSeconds = 3600;

// Returns five times the time after which the cluster gives up a silent worker, at least 10 s.
constexpr std::chrono::duration<double> HangLimit(double detection_seconds) {
  return std::chrono::duration<double>(std::max(10.0, 5 * detection_seconds));
}

}  // namespace troupe

#endif  // TROUPE_BASE_DETECTION_SECONDS_H_
