// Watches the GPUs of this host through NVML on a thread of its own: samples each at an interval,
// receives their error events as they occur, and judges both (worker/devices/device_health.h).
#ifndef TROUPE_WORKER_DEVICES_DEVICE_WATCH_H_
#define TROUPE_WORKER_DEVICES_DEVICE_WATCH_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "worker/devices/device_health.h"
#include "worker/devices/device_sample.h"

namespace troupe {

struct WatchedDevice {
  int index = 0;   // index of the device on this worker
  std::string id;  // "GPU-…", NVML's UUID, or the PCI address "0000:3b:00.0"
};

// The state of one device since its last observation.
struct DeviceObservation {
  int index = 0;
  std::string id;  // as in WatchedDevice
  DeviceSample sample;
  std::vector<DeviceEvent> events;
  // The verdict's cause names the device: "Xid 79 (GPU has fallen off the bus) on GPU-…".
  Verdict verdict;
  Duration elapsed{};  // since its last observation; 0 for the first
};

struct DeviceWatchOptions {
  std::string library;  // path of NVML
  std::vector<WatchedDevice> devices;
  Duration interval = std::chrono::seconds(1);
  // Called on the watch's thread, never after the watch's end: one observation of each device per
  // interval, and one at once for each event. While a device cannot be read it is not observed.
  std::function<void(const DeviceObservation&)> observed;
};

// Thread-safe. If NVML is missing or does not know a device, the log reports once that the health
// of the GPUs, or of that GPU, is not watched, and why.
class DeviceWatch {
 public:
  // REQUIRES: `options` has devices, and the interval is positive.
  explicit DeviceWatch(DeviceWatchOptions options);
  // Ends the watch. A thread that hangs in the driver is abandoned after kEndLimit and reports
  // nothing more.
  ~DeviceWatch();
  DeviceWatch(const DeviceWatch&) = delete;
  DeviceWatch& operator=(const DeviceWatch&) = delete;

  static constexpr Duration kEndLimit = std::chrono::seconds(2);

 private:
  struct Shared;
  const std::shared_ptr<Shared> shared_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_DEVICES_DEVICE_WATCH_H_
