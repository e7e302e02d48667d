// The range of --detection-seconds, from which every time limit of a cluster derives.
#ifndef TROUPE_BASE_DETECTION_SECONDS_H_
#define TROUPE_BASE_DETECTION_SECONDS_H_

namespace troupe {

inline constexpr double kLeastDetectionSeconds = 0.1;
inline constexpr double kMostDetectionSeconds = 3600;

}  // namespace troupe

#endif  // TROUPE_BASE_DETECTION_SECONDS_H_
