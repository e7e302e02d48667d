// The metrics of devices with watched health: troupe_device_*, at most kMostSeries per device.
#ifndef TROUPE_WORKER_DEVICES_DEVICE_METRICS_H_
#define TROUPE_WORKER_DEVICES_DEVICE_METRICS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/metrics/metrics.h"
#include "worker/devices/device_watch.h"

namespace troupe {

// Not thread-safe: only the observing thread uses it.
class DeviceMetrics {
 public:
  static constexpr int kMostXids = 2;  // further ones are counted as "other"
  // Single values 7, throttle reasons 6, memory errors 2, states of health 3, and the Xids.
  static constexpr int kMostSeries = 18 + kMostXids + 1;

  // `metrics` must outlive this object.
  explicit DeviceMetrics(Metrics& metrics) : metrics_(metrics) {}

  // `wall_ns` is in nanoseconds since the Unix epoch.
  void Record(const DeviceObservation& observation, int64_t wall_ns);

 private:
  // Adds the rise of a counter of the device; counting starts with its first value.
  void AddRise(const DeviceObservation& observation, const char* kind, uint64_t total);

  Metrics& metrics_;
  std::map<int, std::set<uint64_t>> xids_;  // those that have a series, by device
  std::map<std::pair<int, std::string>, uint64_t> memory_errors_;  // last value by device and kind
};

}  // namespace troupe

#endif  // TROUPE_WORKER_DEVICES_DEVICE_METRICS_H_
