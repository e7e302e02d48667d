// The metrics of devices whose health is watched: troupe_device_*, one series a device.
#ifndef TROUPE_WORKER_HEALTH_DEVICE_METRICS_H_
#define TROUPE_WORKER_HEALTH_DEVICE_METRICS_H_

#include <cstdint>
#include <map>
#include <utility>

#include "base/metrics.h"
#include "worker/health/device_watch.h"

namespace troupe {

// Not thread-safe: for the thread that observes.
class DeviceMetrics {
 public:
  // Declares the families. `metrics` outlives this.
  explicit DeviceMetrics(Metrics& metrics);

  // `wall_ns`: nanoseconds since the Unix epoch.
  void Record(const DeviceObservation& observation, int64_t wall_ns);

 private:
  // Adds what a counter of the device rose by since its first value, from which counting begins.
  void AddRise(const DeviceObservation& observation, const char* kind, uint64_t total);

  Metrics& metrics_;
  std::map<std::pair<int, std::string>, uint64_t> memory_errors_;  // by device and kind, the last seen
};

}  // namespace troupe

#endif  // TROUPE_WORKER_HEALTH_DEVICE_METRICS_H_
